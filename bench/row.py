"""One line of a benchmark's table."""

from dataclasses import dataclass

SPREAD_MAX = 0.3


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, beside what; `ratio` grows with our lead and should reach `goal`."""

    what: str
    against: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    goal: float
    warm: bool = False
    """Whether the row's own load had warmed both sides; rows stored without the field are cold."""
    spread: float = 0.0
    """How far the ratios of the rounds are apart, as a part of their median."""

    @property
    def is_unsteady(self) -> bool:
        """Whether the rounds differ too much to say anything."""
        return self.spread > SPREAD_MAX

    @property
    def verdict(self) -> str:
        """Say whether the goal was reached; a row without a goal is only stated."""
        if not self.goal:
            return "stated"
        if self.is_unsteady:
            return "unsteady"
        return "passed" if self.ratio >= self.goal else "MISSED"
