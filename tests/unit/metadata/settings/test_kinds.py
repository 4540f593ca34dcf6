"""Texts become values and values texts by Kafka's rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.metadata.settings.kinds import LONG_MAX, Password, SettingKind, parse_as, render


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SettingKind.BOOLEAN, " TRUE ", True),
        (SettingKind.BOOLEAN, "False", False),
        (SettingKind.INT, " +7 ", 7),
        (SettingKind.INT, "-2147483648", -(1 << 31)),
        (SettingKind.LONG, "9223372036854775807", LONG_MAX),
        (SettingKind.SHORT, "0032767", 32767),
        (SettingKind.DOUBLE, "5e-1d", 0.5),
        (SettingKind.DOUBLE, ".5", 0.5),
        (SettingKind.STRING, "  a b ", "a b"),
        (SettingKind.LIST, " a , b,c ", ("a", "b", "c")),
        (SettingKind.LIST, "  ", ()),
        (SettingKind.LIST, "a,,b,", ("a", "", "b", "")),
        (SettingKind.CLASS, "com.example.Thing", "com.example.Thing"),
        (SettingKind.PASSWORD, "secret", Password("secret")),
    ],
)
def test_text_means_value(kind: SettingKind, text: str, value: object) -> None:
    assert parse_as(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SettingKind.BOOLEAN, "yes"),
        (SettingKind.BOOLEAN, ""),
        (SettingKind.INT, "1_000"),
        (SettingKind.INT, "2147483648"),
        (SettingKind.INT, "1.0"),
        (SettingKind.INT, ""),
        (SettingKind.SHORT, "32768"),
        (SettingKind.LONG, "9223372036854775808"),
        (SettingKind.LONG, "9" * 1_000_000),
        (SettingKind.DOUBLE, "nan"),
        (SettingKind.DOUBLE, "1_0"),
        (SettingKind.DOUBLE, "one"),
    ],
)
def test_text_without_meaning(kind: SettingKind, text: str) -> None:
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
    assert parse_as(SettingKind.DOUBLE, text) == value


def test_secrets_do_not_show() -> None:
    assert "hunter2" not in repr(Password("hunter2"))
