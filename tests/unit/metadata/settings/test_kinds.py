"""Texts become values and values texts by Kafka's rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.metadata.settings.kinds import LONG_MAX, Kind, Password, parse_as, render


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " TRUE ", True),
        (Kind.BOOLEAN, "False", False),
        (Kind.INT, " +7 ", 7),
        (Kind.INT, "-2147483648", -(1 << 31)),
        (Kind.LONG, "9223372036854775807", LONG_MAX),
        (Kind.SHORT, "0032767", 32767),
        (Kind.DOUBLE, "5e-1d", 0.5),
        (Kind.DOUBLE, ".5", 0.5),
        (Kind.STRING, "  a b ", "a b"),
        (Kind.LIST, " a , b,c ", ("a", "b", "c")),
        (Kind.LIST, "  ", ()),
        (Kind.LIST, "a,,b,", ("a", "", "b", "")),
        (Kind.CLASS, "com.example.Thing", "com.example.Thing"),
        (Kind.PASSWORD, "secret", Password("secret")),
    ],
)
def test_text_means_value(kind: Kind, text: str, value: object) -> None:
    assert parse_as(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.BOOLEAN, "yes"),
        (Kind.BOOLEAN, ""),
        (Kind.INT, "1_000"),
        (Kind.INT, "2147483648"),
        (Kind.INT, "1.0"),
        (Kind.INT, ""),
        (Kind.SHORT, "32768"),
        (Kind.LONG, "9223372036854775808"),
        (Kind.LONG, "9" * 1_000_000),
        (Kind.DOUBLE, "nan"),
        (Kind.DOUBLE, "1_0"),
        (Kind.DOUBLE, "one"),
    ],
)
def test_text_without_meaning(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError, match=r"number|true or false"):
        parse_as(kind, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (-1234567890.5, "-1.2345678905E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
        (12, "12"),
    ],
)
def test_values_as_java_writes_them(value: bool | int | float | None, text: str) -> None:
    assert render(value) == text


@given(st.floats(allow_nan=False))
def test_doubles_read_back(value: float) -> None:
    text = render(value)
    assert text is not None
    assert parse_as(Kind.DOUBLE, text) == value


def test_secrets_do_not_show() -> None:
    assert "hunter2" not in repr(Password("hunter2"))
