"""Reading OpenTelemetry's metrics."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.otlp import FIELDS_MAX, Point, read_points
from moldau.kernel.errors import ProtocolError
from tests.otlp import double, field, gauge, increase, metrics_data, sfixed64, varint

WHOLE = metrics_data(gauge("g", 0.5, k="v"), increase("s", 7), rack="r1")


def test_gauges_and_sums() -> None:
    assert list(read_points(WHOLE)) == [
        Point("g", (("rack", "r1"), ("k", "v")), 0.5, is_increase=False),
        Point("s", (("rack", "r1"),), 7, is_increase=True),
    ]


def test_kinds_of_attributes() -> None:
    labels = {
        "yes": field(2, 1),
        "number": field(3, 5),
        "negative": field(3, (1 << 64) - 5),
        "share": double(4, 0.5),
        "list": field(5, b""),
    }
    [point] = read_points(metrics_data(gauge("g", 1.0, **labels)))
    assert dict(point.attributes) == {
        "yes": "true",
        "number": "5",
        "negative": "-5",
        "share": "0.5",
        "list": "",
    }


def test_totals_replace_each_other() -> None:
    point = field(1, sfixed64(6, -3))
    cumulative = field(2, field(1, "s") + field(7, point + field(2, 2)))
    [read] = read_points(metrics_data(cumulative))
    assert (read.value, read.is_increase) == (-3, False)


def test_what_is_not_known_is_passed_over() -> None:
    strange = field(99, b"x") + varint(98 << 3 | 5) + b"four" + sfixed64(97, 1) + field(96, 300)
    histogram = field(2, field(1, "h") + field(9, b""))
    assert list(read_points(strange + metrics_data(histogram, strange))) == []


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\xff",
        b"\x0a\x05ab",
        b"\x09\x00",
        b"\x0b",
        b"\xff" * 11,
        metrics_data(field(2, field(1, b"\xff"))),
        b"\x08\x00" * (FIELDS_MAX + 1),
    ],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(read_points(data))


@given(st.binary(max_size=100), st.integers(0, len(WHOLE)))
def test_random_bytes_are_points_or_an_error(noise: bytes, at: int) -> None:
    for data in (noise, WHOLE[:at] + noise + WHOLE[at:]):
        with suppress(ProtocolError):
            assert all(isinstance(point, Point) for point in read_points(data))
