"""No text ends the parser, or keeps it for long."""

import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.lexing import is_complete
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from tests.golden_text import FOLDER

MEGABYTE = 1_000_000
STATEMENTS = [
    each
    for name in ("statements", "errors")
    for each in (FOLDER / "sql" / f"{name}.sql").read_text().split("\n\n")
]
WORDS = sorted({word for each in STATEMENTS for word in each.split()})
MARKS = [*"()[]{}<>,;.:'\"`-*/+=\\\n \0", "--", "/*", "*/", "->", "::", "é", "0x", "1e9"]


def _parse(text: str) -> None:
    with suppress(SqlError):
        parse(text)
    is_complete(text)


@given(st.text())
def test_any_text(text: str) -> None:
    _parse(text)


@given(st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=30).map(" ".join))
def test_words_of_the_language_in_any_order(text: str) -> None:
    _parse(text)


@given(st.sampled_from(STATEMENTS), st.data())
def test_statements_with_something_wrong(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 10)))
    _parse(text[:start] + data.draw(st.sampled_from(["", *WORDS, *MARKS])) + text[end:])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(" * MEGABYTE, "nested more than 32 deep"),
        ("SELECT " + "f(" * MEGABYTE, "nested more than 32 deep"),
        ("SELECT '" + "a" * MEGABYTE, "no end"),
        ("SELECT '" + "\\" * (MEGABYTE + 1), "no end"),
        ("`" * (MEGABYTE + 1), "no end"),
        ("/*" * MEGABYTE, "no end"),
        ("SELECT " + "NOT " * 20_000 + "a", "at most 10000 words"),
        ("SELECT " + "NOT " * 5_000 + "a", "nested too deeply"),
        ("SELECT " + "CASE WHEN " * 2_000 + "a", "nested too deeply"),
        ("SELECT a" + "::int" * 2_000, "nested too deeply"),
        ("SELECT a" + ".b" * 2_000, "nested too deeply"),
        ("SELECT CAST(a AS " + "ARRAY<" * 500, "not closed"),
        ("SELECT CAST(a AS " + "ARRAY<" * 500 + ")", "types are nested more than 32 deep"),
        ("CREATE STREAM a (b " + "ARRAY<" * 500 + ")", "types are nested more than 32 deep"),
        ("SELECT 1 FROM t " + "WINDOW SESSION (1 DAY) " * 900 + "GROUP BY a", "one WINDOW"),
        ("SELECT \0", "U+0000"),
        ("SELECT '\ud800'", "U+D800"),
        ("SELECT 1 LIMIT 99999999999999999999999 EMIT CHANGES", "a number of rows"),
        ("SELECT * FROM t VERSION AS OF '" + "[" * 100_000 + "'", "expected offsets"),
    ],
    ids=lambda each: each[:16] if len(each) > 60 else None,
)
def test_hostile_text_is_an_error(text: str, said: str) -> None:
    with pytest.raises(SqlError, match=said.replace("+", r"\+")) as raised:
        parse(text)
    assert len(str(raised.value)) < 1_000


def test_long_sums_are_no_nesting() -> None:
    (statement,) = parse("SELECT 1" + " + 1" * 3_000)
    assert isinstance(statement, Select)
    assert statement.query.expression.sql("duckdb").count("+") == 3_000


def test_nested_calls_are_fine() -> None:
    text = "SELECT " + "f(" * 32 + "1" + ")" * 32
    (statement,) = parse(text)
    assert statement.text == text


def test_errors_survive_a_pickle() -> None:
    with pytest.raises(PipelineError) as raised:
        parse("SELECT 1;\n SHOW x")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.line, copy.column) == (str(raised.value), 2, 7)


def test_nothing_is_said_beside_the_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SqlError, match="column 29"):
        parse("WITH a AS (SELECT 1) CREATE b")
    assert not caplog.records
