"""Aggregates from which values can be taken back, for tables: rows change and are deleted.

As in `folds`, values are never null. What is kept of a group is JSON, so that sums may have as many
digits as they need.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from decimal import Decimal, localcontext
from typing import Any, Final, Protocol

from moldau.pipelines.streams.exact_sums import ExactSum
from moldau.pipelines.streams.folds import SUMS, Average, Count, Extreme, Fold, Kept, Sum


class ValueCounts(Protocol):
    """How often each value is in a group, by its text; wherever that is kept."""

    def get(self, text: str) -> int:
        """Return how often it is there."""

    def put(self, text: str, count: int) -> None:
        """Note that; zero is not there any more."""

    def texts(self) -> Iterator[str]:
        """Yield the values that are there."""


class TableFold(ABC):
    """One aggregate function over the rows that are there."""

    empty: Kept
    """What is kept of no values."""
    keeps_values: bool = False
    """Whether it needs the values of a group, and not only what they amount to."""

    @abstractmethod
    def change(
        self, kept: Kept, added: Sequence[Any], taken: Sequence[Any], counts: ValueCounts | None
    ) -> Kept:
        """Return what is kept when values have come, and others have gone."""

    @abstractmethod
    def result(self, kept: Kept) -> Any:
        """Return the aggregate, None where Spark has null."""


class TableCount(TableFold):
    """How many there are."""

    empty = (0,)

    def change(
        self, kept: Kept, added: Sequence[Any], taken: Sequence[Any], counts: ValueCounts | None
    ) -> Kept:
        """Count."""
        del counts
        return (kept[0] + len(added) - len(taken),)

    def result(self, kept: Kept) -> Any:
        """Return the number."""
        return kept[0]


@dataclass(frozen=True, slots=True)
class TableTotal(TableFold):
    """Their sum or their mean, null if there are none: exact, whatever comes and goes."""

    fold: Sum | Average
    """What is made of a sum."""
    kind: str
    """What is added up: long, decimal or double."""
    empty = (0, None)
    """How many there are, and their sum."""

    def change(
        self, kept: Kept, added: Sequence[Any], taken: Sequence[Any], counts: ValueCounts | None
    ) -> Kept:
        """Add, subtract and count."""
        del counts
        number = kept[0] + len(added) - len(taken)
        total = self._read(kept[1])
        if isinstance(total, ExactSum):
            total = total.add(added).add(taken, -1)
        else:
            with localcontext(SUMS):
                total += sum(added) - sum(taken)
        return number, self._written(total) if number else None

    def result(self, kept: Kept) -> Any:
        """Return the sum or the mean, rounded as Spark does."""
        number, total = kept[0], self._read(kept[1])
        if not number:
            return None
        rounded = total.rounded if isinstance(total, ExactSum) else total
        if isinstance(self.fold, Sum):
            self.fold.check(rounded)
            return rounded
        self.fold.sum.check(rounded)
        return self.fold.result((rounded, number))

    def _read(self, kept: Any) -> Any:
        match self.kind:
            case "double":
                return ExactSum(*(kept or ()))
            case "decimal":
                return Decimal(kept or 0)
            case _:
                return kept or 0

    def _written(self, total: Any) -> Any:
        match total:
            case ExactSum():
                return astuple(total)
            case Decimal():
                return str(total)
            case _:
                return total


_TEXTS: Final[Mapping[str, tuple[Callable[[Any], str], Callable[[str], Any]]]] = {
    "binary": (lambda value: bytes(value).hex(), bytes.fromhex),
    "boolean": (lambda value: "1" if value else "", bool),
    "decimal": (str, Decimal),
    # Minus zero is zero.
    "double": (lambda value: repr(value + 0.0), float),
    "long": (str, int),
    "string": (str, str),
}
"""Values of each type as texts, and back."""


@dataclass(frozen=True, slots=True)
class TableExtreme(TableFold):
    """The smallest or the largest, null if there are none: the next one is found when it goes."""

    fold: Extreme
    kind: str
    """The type of the values: a name of `_TEXTS`."""
    empty = (None,)
    keeps_values = True

    def change(
        self, kept: Kept, added: Sequence[Any], taken: Sequence[Any], counts: ValueCounts | None
    ) -> Kept:
        """Count each value; look at all of them only if the best one has gone."""
        assert counts is not None, "the values of the group are needed"
        write = _TEXTS[self.kind][0]
        changes = Counter(map(write, added))
        changes.subtract(map(write, taken))
        there, gone = [], set()
        for text, change in changes.items():
            if not change:
                continue
            count = counts.get(text) + change
            assert count >= 0, f"{text} is taken back, and was not added"
            counts.put(text, count)
            if count:
                there.append(text)
            else:
                gone.add(text)
        best = kept[0]
        if best not in gone:
            return (self._choose([*there, best] if best is not None else there),)
        # One that is as good as the one that has gone needs no look at the others.
        if there and self._choose([best, *there]) != best:
            return (self._choose(there),)
        return (self._choose(list(counts.texts())),)

    def result(self, kept: Kept) -> Any:
        """Return it."""
        return None if kept[0] is None else _TEXTS[self.kind][1](kept[0])

    def _choose(self, texts: Sequence[str]) -> str | None:
        write, read = _TEXTS[self.kind]
        (best,) = self.fold.add((None,), [read(text) for text in texts])
        return None if best is None else write(best)


def table_fold(fold: Fold, kind: str) -> TableFold:
    """Return the fold that takes back what another one only adds; `kind` is its values' type."""
    match fold:
        case Count():
            return TableCount()
        case Sum() | Average():
            return TableTotal(fold, kind)
        case Extreme():
            return TableExtreme(fold, kind)
        case _:
            raise AssertionError(fold)
