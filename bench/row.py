"""One line of a benchmark's table."""

from dataclasses import dataclass


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
