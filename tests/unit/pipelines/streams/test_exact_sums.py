"""Sums of doubles from which values are taken back."""

from math import fsum, inf, isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.exact_sums import ExactSum

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FINITE, st.booleans())))
def test_what_stays_is_rounded_once(values: list[tuple[float, bool]]) -> None:
    taken = [value for value, is_taken in values if is_taken]
    left = [value for value, is_taken in values if not is_taken]
    total = ExactSum().add([value for value, _ in values]).add(taken, -1)
    try:
        expected = fsum(left)
    except OverflowError:
        return
    assert total.rounded == expected
    # What is kept does not depend on what has been there.
    assert total == ExactSum().add(reversed(left))


def test_what_is_no_number_can_be_taken_back() -> None:
    total = ExactSum().add([1.5, nan, inf, -inf])
    assert isnan(total.rounded)
    assert isnan(total.add([nan], -1).rounded)
    assert total.add([nan, inf], -1).rounded == -inf
    assert total.add([nan, -inf], -1).rounded == inf
    assert total.add([nan, inf, -inf], -1).rounded == 1.5


def test_a_sum_beyond_all_doubles_is_infinite_and_comes_back() -> None:
    large = ExactSum().add([1.7e308, 1.7e308])
    assert large.rounded == inf
    assert large.add([1.7e308], -1).rounded == 1.7e308
    assert ExactSum().add([-1.7e308, -1.7e308]).rounded == -inf


def test_small_parts_are_not_lost() -> None:
    assert ExactSum().add([1e16, 0.1]).add([1e16], -1).rounded == 0.1
    assert ExactSum().add([0.1]).add([0.1], -1) == ExactSum()
