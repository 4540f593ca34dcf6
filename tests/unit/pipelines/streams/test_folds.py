"""What aggregates keep and give, value by value."""

from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.folds import Average, Count, Extreme, Fold, Sum


def fold_all(fold: Fold, *batches: list[Any]) -> Any:
    kept = fold.empty
    for values in batches:
        kept = fold.add(kept, values)
    return fold.result(kept)


def test_of_nothing() -> None:
    assert fold_all(Count(), []) == 0
    for fold in (Sum("s"), Average(Sum("s")), Extreme(is_max=True)):
        assert fold_all(fold, [], []) is None


def test_over_batches() -> None:
    assert fold_all(Count(), [True, True], [], [True]) == 3
    assert fold_all(Sum("s"), [1, 2], [], [-5]) == -2
    assert fold_all(Average(Sum("s")), [1.0], [2.0, 6.0]) == 3.0
    assert fold_all(Extreme(is_max=True), ["b", "a"], [], ["é", "c"]) == "é"
    assert fold_all(Extreme(is_max=False), [b"\xff", b"\x01\0"], [b"\x02"]) == b"\x01\0"
    # What is false is a value, too.
    assert fold_all(Extreme(is_max=False), [0], [3]) == 0
    assert fold_all(Sum("s"), [0], []) == 0


def test_nan_is_larger_than_all_numbers() -> None:
    assert isnan(fold_all(Extreme(is_max=True), [1.0, nan], [inf]))
    assert fold_all(Extreme(is_max=False), [nan], [inf]) == inf
    assert isnan(fold_all(Sum("s"), [nan], [1.0]))


def test_decimals_keep_all_digits() -> None:
    large, small = Decimal("12345678901234567890123456789012345.25"), Decimal("0.01")
    total = Decimal("12345678901234567890123456789012345.27")
    assert fold_all(Sum("s", 36), [large], [small, small]) == total
    assert fold_all(Average(Sum("s", 17), 6), [Decimal("1.00")], [Decimal("1.00"), small]) == (
        Decimal("0.670000")
    )
    assert fold_all(Average(Sum("s", 17), 2), [Decimal("0.01"), Decimal("0.00")]) == (
        Decimal("0.01")  # a half is rounded up
    )


@pytest.mark.parametrize(
    ("fold", "values"),
    [(Sum("s"), [2**63 - 1, 1]), (Sum("s"), [-(2**63), -1]), (Sum("s", 2), [Decimal(99)] * 2)],
)
def test_a_sum_that_has_no_place_is_an_error(fold: Fold, values: list[Any]) -> None:
    fold.add(fold.empty, values[:1])
    with pytest.raises(PipelineError, match=r"^s: -?\d+ is too large for the result's type"):
        fold_all(fold, *([value] for value in values))
