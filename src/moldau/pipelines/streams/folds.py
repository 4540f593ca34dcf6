"""How results are kept between batches: from values to what is kept, from that to the result.

Values are never null here: Spark's aggregates pass nulls over, and so do those who call this.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, Final

from moldau.pipelines.errors import PipelineError

Kept = tuple[Any, ...]

# More digits than Spark's largest decimals have, so that no sum of a batch is rounded.
SUMS: Final = Context(prec=76, rounding=ROUND_HALF_UP)
# Spark divides with one digit more than a result can have, and rounds that a second time.
_QUOTIENTS: Final = Context(prec=39, rounding=ROUND_HALF_UP)
_LONG_MAX: Final = 2**63 - 1


class Fold(ABC):
    """One aggregate function."""

    empty: Kept
    """What is kept of no values."""

    @abstractmethod
    def add(self, kept: Kept, values: Sequence[Any]) -> Kept:
        """Return what is kept when these values have come, too."""

    @abstractmethod
    def result(self, kept: Kept) -> Any:
        """Return the aggregate, None where Spark has null."""


class Count(Fold):
    """How many there were."""

    empty = (0,)

    def add(self, kept: Kept, values: Sequence[Any]) -> Kept:
        """Count these, too."""
        return (kept[0] + len(values),)

    def result(self, kept: Kept) -> Any:
        """Return the number."""
        return kept[0]


@dataclass(frozen=True, slots=True)
class Sum(Fold):
    """Their sum, null if there were none; one that has no place is an error, as in Spark."""

    what: str
    """How errors call it."""
    digits_max: int | None = None
    """Of a decimal: how many it may have before the point."""
    empty = (None,)

    def add(self, kept: Kept, values: Sequence[Any]) -> Kept:
        """Add these, too."""
        if not values:
            return kept
        with localcontext(SUMS):
            total = sum(values) if kept[0] is None else sum(values, kept[0])
        self.check(total)
        return (total,)

    def check(self, total: Any) -> None:
        """Raise if the result's type has no place for a sum."""
        match total:
            case int():
                has_place = -_LONG_MAX - 1 <= total <= _LONG_MAX
            case Decimal():
                has_place = self.digits_max is None or total.adjusted() < self.digits_max
            case _:
                has_place = True
        if not has_place:
            raise PipelineError(f"{self.what}: {total} is too large for the result's type")

    def result(self, kept: Kept) -> Any:
        """Return the sum."""
        return kept[0]


@dataclass(frozen=True, slots=True)
class Average(Fold):
    """Their mean, null if there were none."""

    sum: Sum
    scale: int | None = None
    """Of a decimal: how many digits the mean has behind the point."""
    empty = (None, 0)

    def add(self, kept: Kept, values: Sequence[Any]) -> Kept:
        """Add and count these, too."""
        return (*self.sum.add(kept[:1], values), kept[1] + len(values))

    def result(self, kept: Kept) -> Any:
        """Return the mean, rounded as Spark does."""
        total, count = kept
        if not count:
            return None
        if self.scale is None:
            return total / count
        mean = _QUOTIENTS.divide(total, Decimal(count))
        return mean.quantize(Decimal(1).scaleb(-self.scale), context=SUMS)


@dataclass(frozen=True, slots=True)
class Extreme(Fold):
    """The smallest or the largest, null if there were none. NaN is larger than all numbers."""

    is_max: bool
    empty = (None,)

    def add(self, kept: Kept, values: Sequence[Any]) -> Kept:
        """Look at these, too."""
        if not values:
            return kept
        choose = max if self.is_max else min
        best = choose(values, key=_rank)
        return (best,) if kept[0] is None else (choose(kept[0], best, key=_rank),)

    def result(self, kept: Kept) -> Any:
        """Return it."""
        return kept[0]


def _rank(value: Any) -> tuple[bool, Any]:
    return value != value, value  # noqa: PLR0124 - NaN is not equal to itself
