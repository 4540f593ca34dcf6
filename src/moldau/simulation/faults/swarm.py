"""Swarms: each seed enables some kinds of faults, at rates of its own."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from moldau.simulation.faults.injector import FAULT_KINDS
from moldau.simulation.faults.script import COUNTERS, ScriptedFault
from moldau.simulation.run import Run

RATES: Final = (0.5, 1.0, 1.0, 2.0, 4.0)


class Swarm:
    """Draws faults of some kinds, as the seed has it; a run with more of them finds less."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        """Restrict it to some kinds; these are all enabled, by every seed."""
        self._kinds = tuple(kinds)

    def begin(self, run: Run, counts: Counter[str]) -> Iterable[ScriptedFault]:
        """Enable kinds, and return the first fault of each."""
        random = run.world.random("swarm")
        enabled = [
            kind
            for kind in self._kinds or FAULT_KINDS
            if self._kinds or random.random() < self._rate(run)
        ]
        self._seconds = {
            kind: FAULT_KINDS[kind].every_seconds / random.choice(RATES) for kind in enabled
        }
        return [self._draw(run, kind, counts) for kind in enabled]

    def follow(self, run: Run, fault: ScriptedFault, counts: Counter[str]) -> ScriptedFault:
        """Return the next fault of the same kind."""
        return self._draw(run, fault.kind, counts)

    @staticmethod
    def _rate(run: Run) -> float:
        return run.world.random("swarm size").choice((0.1, 0.25, 0.5)) 

    def _draw(self, run: Run, name: str, counts: Counter[str]) -> ScriptedFault:
        kind = FAULT_KINDS[name]
        random = run.world.random(f"faults {name}")
        counter = random.choice(kind.counters)
        wait = random.expovariate(1 / self._seconds[name]) * COUNTERS[counter]
        target, details = kind.draw(random, run)
        texts = tuple((key, str(value)) for key, value in details.items())
        return ScriptedFault(name, target, counter, counts[counter] + 1 + int(wait), texts)
