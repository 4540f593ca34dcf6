"""Swarms: each seed enables some kinds of faults, at rates of its own."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from moldau.simulation.faults.injector import FAULT_KINDS, Injector, ScriptPlan
from moldau.simulation.faults.script import COUNTERS, ScriptedFault
from moldau.simulation.run import SimulatedRun

SIZES: Final = (0.1, 0.2, 0.4)
"""How many of all kinds a seed enables, on average."""
RATES: Final = (0.5, 1.0, 1.0, 2.0, 4.0)


class Swarm:
    """Draws faults of some kinds, as the seed has it; a run with more of them finds less."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        """Restrict it to some kinds; these are all enabled, by every seed."""
        self._kinds = tuple(kinds)

    def begin(self, run: SimulatedRun, counts: Counter[str]) -> Iterable[ScriptedFault]:
        """Enable kinds, and return the first fault of each."""
        random = run.world.random("swarm")
        size = random.choice(SIZES)
        enabled = [
            kind for kind in self._kinds or FAULT_KINDS if self._kinds or random.random() < size
        ]
        self._seconds = {
            kind: FAULT_KINDS[kind].every_seconds / random.choice(RATES) for kind in enabled
        }
        return [self._draw(run, kind, counts) for kind in enabled]

    def follow(
        self, run: SimulatedRun, fault: ScriptedFault, counts: Counter[str]
    ) -> ScriptedFault:
        """Return the next fault of the same kind."""
        return self._draw(run, fault.kind, counts)

    def _draw(self, run: SimulatedRun, name: str, counts: Counter[str]) -> ScriptedFault:
        kind = FAULT_KINDS[name]
        random = run.world.random(f"faults {name}")
        counter = random.choice(kind.counters)
        wait = random.expovariate(1 / self._seconds[name]) * COUNTERS[counter]
        target, details = kind.draw(random, run)
        texts = tuple((key, str(value)) for key, value in details.items())
        return ScriptedFault(name, target, counter, counts[counter] + 1 + int(wait), texts)


def swarming(
    seed: int, seconds: float, kinds: Sequence[str] | None, *, keeps_text: bool = False
) -> tuple[SimulatedRun, Injector]:
    """Return a run with faults of these kinds, None: those that the seed chooses."""
    injector = Injector(ScriptPlan(()) if kinds is not None and not kinds else Swarm(kinds or ()))
    return SimulatedRun(seed, seconds=seconds, faults=injector, keeps_text=keeps_text), injector
