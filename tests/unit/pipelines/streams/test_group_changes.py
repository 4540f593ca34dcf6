"""Groups of a table's rows, against a computation over the rows that are there."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.folds import Average, Count, Extreme, Sum
from moldau.pipelines.streams.group_changes import (
    Contribution,
    GroupAggregates,
    changes_between,
)
from moldau.pipelines.streams.table_folds import TableFold, ValueCounts, table_fold

Values = tuple[Any, ...]


class DictCounts:
    """Values in memory; it counts how often all of them were looked at."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.looks = 0

    def get(self, text: str) -> int:
        return self.counts.get(text, 0)

    def put(self, text: str, count: int) -> None:
        if count:
            self.counts[text] = count
        else:
            del self.counts[text]

    def texts(self) -> Iterator[str]:
        self.looks += 1
        yield from self.counts


FOLDS: Sequence[TableFold] = [
    table_fold(Count(), "boolean"),
    table_fold(Sum("s"), "long"),
    table_fold(Sum("s", 28), "decimal"),
    table_fold(Sum("s"), "double"),
    table_fold(Average(Sum("s")), "double"),
    table_fold(Average(Sum("s", 28), 6), "decimal"),
    *(table_fold(Extreme(is_max=True), kind) for kind in ("long", "double", "decimal", "string")),
    *(table_fold(Extreme(is_max=False), kind) for kind in ("binary", "boolean", "string")),
]
LONGS = st.integers(-(2**40), 2**40)
DECIMALS = LONGS.map(lambda number: Decimal(number).scaleb(-2))
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, max_value=1e200, min_value=-1e200)
FEW = st.sampled_from
ROW = st.tuples(
    *(
        st.one_of(st.none(), each)
        for each in (
            st.just(value=True), LONGS, DECIMALS, DOUBLES, DOUBLES, DECIMALS,
            LONGS, st.floats(), DECIMALS, FEW(["", "a", "é", "b"]),
            FEW([b"", b"\x00", b"\xff"]), st.booleans(), st.text(max_size=2),
        )
    )
)  # fmt: skip
BATCHES = st.lists(
    st.dictionaries(
        st.integers(0, 4), st.one_of(st.none(), st.tuples(FEW("xyz"), ROW)), max_size=5
    ),
    max_size=6,
)


def expected(rows: Sequence[Values]) -> Values:
    """Compute the aggregates of rows at once."""
    columns = [
        [value for value in column if value is not None] for column in zip(*rows, strict=True)
    ]

    def mean(values: list[Decimal]) -> Decimal | None:
        if not values:
            return None
        return Average(Sum("s", 28), 6).result((sum(values), len(values)))

    def most(values: list[Any]) -> Any:
        # NaN is the largest, and minus zero is zero.
        found = max(values, key=lambda value: (repr(value) == "nan", value), default=None)
        return found if found is None or not isinstance(found, float) else found + 0.0

    counts, longs, decimals, doubles, others, means, *ranked = columns
    return (
        len(counts),
        sum(longs) if longs else None,
        sum(decimals) if decimals else None,
        fsum(doubles) if doubles else None,
        fsum(others) / len(others) if others else None,
        mean(means),
        *map(most, ranked[:4]),
        *(min(values, default=None) for values in ranked[4:]),
    )


@given(BATCHES)
def test_groups_are_those_of_the_rows_that_are_there(
    batches: list[dict[int, tuple[str, Values] | None]],
) -> None:
    aggregates = GroupAggregates(FOLDS)
    rows: dict[int, tuple[str, Values]] = {}
    states: dict[str, str] = {}
    counts: dict[str, list[ValueCounts | None]] = {
        group: [DictCounts() if fold.keeps_values else None for fold in FOLDS] for group in "xyz"
    }
    table: dict[str, Values] = {}
    for batch in batches:
        changes: dict[str, list[tuple[bool, Values]]] = {}
        for key, after in batch.items():
            before = rows.get(key)
            told = changes_between(_contribution(before), _contribution(after))
            for (group, _), is_added in told:
                found = after if is_added else before
                assert found is not None
                changes.setdefault(group, []).append((is_added, found[1]))
            if after is None:
                rows.pop(key, None)
            else:
                rows[key] = after
        for group, told_changes in changes.items():
            step = aggregates.change(states.pop(group, None), told_changes, counts[group])
            if step.state is not None:
                states[group] = step.state
            if step.changed is not None and step.changed.results is not None:
                assert repr(table.get(group)) != repr(step.changed.results)
                table[group] = step.changed.results
            elif step.changed is not None:
                assert table.pop(group, None) is not None
        wanted: dict[str, list[Values]] = {}
        for group, values in rows.values():
            wanted.setdefault(group, []).append(values)
        assert {group: repr(_plain(found)) for group, found in table.items()} == {
            group: repr(_plain(expected(found))) for group, found in wanted.items()
        }
        assert states.keys() == wanted.keys()
    for group, stores in counts.items():
        if group not in states:
            assert not any(store.counts for store in stores if isinstance(store, DictCounts))


def _contribution(row: tuple[str, Values] | None) -> Contribution | None:
    return None if row is None else Contribution(row[0], repr(row[1]))


def _plain(values: Values) -> list[Any]:
    """Return values so that equal ones are written equally: 0.0 and -0.0, 1.10 and 1.1."""
    return [
        value.normalize() if isinstance(value, Decimal)
        else value + 0.0 if isinstance(value, float) else value
        for value in values
    ]  # fmt: skip


def test_a_row_that_stays_as_it_was_tells_nothing() -> None:
    row = Contribution("a", "1")
    assert changes_between(row, row) == changes_between(None, None) == []
    assert [each.is_added for each in changes_between(row, Contribution("b", "1"))] == [False, True]


def test_all_values_are_looked_at_only_when_the_largest_goes() -> None:
    counts = DictCounts()
    aggregates = GroupAggregates([table_fold(Extreme(is_max=True), "long")])
    state: str | None = None
    for changes, largest, looks in [
        ([(True, (5,)), (True, (3,)), (True, (5,))], 5, 0),
        ([(False, (5,))], 5, 0),
        ([(False, (3,)), (True, (4,))], 5, 0),
        ([(False, (5,)), (True, (7,))], 7, 0),
        ([(False, (7,))], 4, 1),
    ]:
        step = aggregates.change(state, changes, [counts])
        state = step.state
        assert state is not None
        assert json.loads(state)[1] == [str(largest)]
        assert counts.looks == looks


def test_a_sum_without_a_place_is_an_error_only_if_it_stays() -> None:
    aggregates = GroupAggregates([table_fold(Sum("total=sum(n)"), "long")])
    most = 2**63 - 1
    step = aggregates.change(None, [(True, (most,))], [None])
    again = aggregates.change(step.state, [(True, (5,)), (False, (most,))], [None])
    assert again.changed is not None
    assert again.changed.results == (5,)
    with pytest.raises(PipelineError, match=r"^total=sum\(n\): \d+ is too large"):
        aggregates.change(step.state, [(True, (1,))], [None])


def test_a_group_without_rows_is_gone_and_one_of_nulls_is_there() -> None:
    aggregates = GroupAggregates([table_fold(Count(), "boolean"), table_fold(Sum("s"), "long")])
    step = aggregates.change(None, [(True, (None, None))], [None, None])
    assert step.changed is not None
    assert step.changed.results == (0, None)
    step = aggregates.change(step.state, [(False, (None, None))], [None, None])
    assert step == (None, (None,))
