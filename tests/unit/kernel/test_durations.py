from datetime import timedelta

import pytest

from moldau.kernel.durations import seconds_of


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("7 days", 604_800),
        ("1 day", 86_400),
        ("200 ms", 0.2),
        ("200ms", 0.2),
        ("1.5 h", 5400),
        ("1 h 30 min", 5400),
        ("2 hours, 5 minutes and 1 second", 7501),
        ("10 s", 10),
        ("3 Weeks", 1_814_400),
        (timedelta(days=1, milliseconds=5), 86_400.005),
        (2.5, 2.5),
        (0, 0),
    ],
)
def test_spans_of_time(duration: str | float | timedelta, seconds: float) -> None:
    assert seconds_of(duration) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "nonsense", ["", "  ", "7", "days", "7 dogs", "7 days later", "-1 s", "1 h 30", None, True, [1]]
)
def test_nonsense_is_told_what_to_write(nonsense: object) -> None:
    with pytest.raises(ValueError, match='such as "7 days" or "200 ms"'):
        seconds_of(nonsense)  # type: ignore[arg-type]


@pytest.mark.parametrize("span", [-1, float("nan"), float("inf"), timedelta(seconds=-1)])
def test_time_goes_forward(span: float | timedelta) -> None:
    with pytest.raises(ValueError, match="time goes forward"):
        seconds_of(span)
