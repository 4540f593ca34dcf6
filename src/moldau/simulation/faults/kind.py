"""The kinds of faults, as whatever makes them happen sees them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

from moldau.simulation.faults.script import ScriptedFault

if TYPE_CHECKING:
    from moldau.simulation.run import SimulatedRun


class Aftermath(Protocol):
    """Takes what is to happen after a fault."""

    def lasts(self, seconds: float, undo: Callable[[], object]) -> None:
        """Have a fault end after so many seconds, or when everything is healed."""

    def node_ends(self, absence_seconds: float) -> None:
        """Have the node started again so long after it has ended; it ends now or soon."""

    def forgive(self) -> None:
        """Let the node end by itself, as a disk of it has failed."""


Happen = Callable[["SimulatedRun", ScriptedFault, Aftermath], None]
Draw = Callable[[Random, "SimulatedRun"], tuple[str, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault."""

    name: str
    about: str
    """What it is, and what it spares."""
    counters: tuple[str, ...]
    """The events that it may be tied to."""
    draw: Draw
    """Chooses a target and details."""
    happen: Happen
    """Makes it happen; it is in the middle of the event."""
    every_seconds: float = 15.0
    """How far apart two are as a rule, before a seed makes it more or less."""
    loses_power: bool = False
    """Whether runs whose acknowledged records a power loss takes are spared."""


def seconds_up_to(random: Random, most: float) -> str:
    """Return a duration; short ones are more frequent."""
    return f"{random.random() ** 2 * most:.3f}"
