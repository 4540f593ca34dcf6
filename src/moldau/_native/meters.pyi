"""The meters: numbers that the other kernels count with every request."""

from collections.abc import Sequence

class Tally:
    """A number to add to."""

    value: int

class Buckets:
    """How often values fell below each bound."""

    bounds: tuple[float, ...]
    sum: float

    def __init__(self, bounds: Sequence[float]) -> None: ...
    @property
    def counts(self) -> list[int]:
        """How many values were at most each bound and over the one before; then, those over all."""

    def observe(self, value: float, count: int = 1) -> None:
        """Count a value, or as many that are alike."""
