"""One line of the table that `make bench` prints."""

from typing import NamedTuple


class Row(NamedTuple):
    """A race: `ratio` says how many times better than theirs ours is, and reaches `goal` or not."""

    what: str
    against: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    goal: float
