"""Java's properties files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.metadata.settings.properties import PropertiesError, parse_properties


def pairs(text: str) -> dict[str, str]:
    return {item.key: item.value for item in parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b\nc d", {"a": "b", "c": "d"}),
        ("  a\t\f:\t b", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n  ! c=d\n\n \t\ne=f", {"e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\\n   c\\\r\n  d", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        ("# comment \\\na=b", {"a": "b"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        (r"a\=b\:c\ d=\t\n\r\f\q\"", {"a=b:c d": '\t\n\r\fq"'}),
        (r"a=caf\u00e9 \u2603", {"a": "caf\u00e9 \u2603"}),
        ("a=b\rc=d\r\ne=f", {"a": "b", "c": "d", "e": "f"}),
        ("", {}),
    ],
)
def test_text_means_pairs(text: str, found: dict[str, str]) -> None:
    assert pairs(text) == found


def test_lines_are_counted_where_they_begin() -> None:
    text = "# one\na=b\\\n  c\n\nd=e"
    assert [(item.key, item.line) for item in parse_properties(text)] == [("a", 2), ("d", 5)]


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\uzzzz", r"\u=1"])
def test_half_an_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match="line 2"):
        pairs(f"# comment\n{text}")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        pairs(text)
    except PropertiesError:
        assert "\\u" in text
