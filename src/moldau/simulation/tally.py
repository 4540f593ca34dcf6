"""The tally of many runs: what was done, what went wrong, and what was found."""

from collections import Counter
from dataclasses import dataclass, field

from moldau.simulation.run import RunOutcome


@dataclass
class RunTally:
    """Sums over runs."""

    seeds: int = 0
    seconds: float = 0.0
    """Of the worlds' time."""
    outage_seconds: float = 0.0
    cpu_seconds: float = 0.0
    acknowledged: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    faults_in_flight: Counter[str] = field(default_factory=Counter)
    violations: dict[int, str] = field(default_factory=dict)
    """By seed."""

    def add(self, outcome: RunOutcome, cpu_seconds: float) -> None:
        """Add a run."""
        self.seeds += 1
        self.seconds += outcome.seconds
        self.outage_seconds += outcome.outage_seconds
        self.cpu_seconds += cpu_seconds
        self.acknowledged += outcome.acknowledged
        self.faults += outcome.faults
        self.faults_in_flight += outcome.faults_in_flight
        if outcome.violation:
            self.violations[outcome.seed] = outcome.violation

    @property
    def operations_per_second(self) -> float:
        """How many operations were acknowledged per second of the worlds outside of outages."""
        return self.acknowledged.total() / max(1.0, self.seconds - self.outage_seconds)

    @property
    def speed(self) -> float:
        """Hours of nodes per hour of CPU."""
        return self.seconds / max(1e-9, self.cpu_seconds)
