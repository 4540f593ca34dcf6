"""What the broker needs from outside; the shell fills it."""

from collections.abc import Callable
from typing import Protocol

from moldau.controller.commands import Command
from moldau.controller.decision import Answer
from moldau.kernel.clock import Instant


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """Make it not happen."""


class Environment(Protocol):
    """Time and chance."""

    def now(self) -> Instant:
        """Return both clocks."""

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        """Have something done at a time."""

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""


class ControllerPort(Protocol):
    """The active controller, wherever it is."""

    @property
    def leader_id(self) -> int | None:
        """The node that leads the quorum, None while nobody does."""

    def submit(self, command: Command[Answer], then: Callable[[Answer | None], None]) -> None:
        """Have a command decided; nothing is committed before the call returns.

        `then` gets the answer when the decision is committed and this broker acts on it, or None
        when there is no controller that decides.
        """
