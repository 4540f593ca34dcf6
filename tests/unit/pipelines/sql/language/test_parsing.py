"""Files of statements, what a shell asks, and what a declaration is."""

import pytest

from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.lexing import is_complete, split
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, relation_of
from moldau.pipelines.sql.relations import Column, Relation, RelationKind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- that was it\n", True),
        ("SELECT 1 -- ;", False),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 'it''s;", False),
        ("SELECT r'\\';", True),
        ("SELECT '\\';", False),
        ("SELECT `a;", False),
        ("SELECT /* ; */ 1", False),
        ("SELECT /* /* ; */ 1;", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT (1;", True),
        ("SELECT \0", True),
    ],
)
def test_a_shell_asks_whether_that_was_all(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_statements_know_where_they_begin() -> None:
    found = parse(";;\n  -- first\n  SHOW TABLES ;/* a */ SHOW\nTOPICS\n;")
    assert [(each.text, each.line, each.column) for each in found] == [
        ("SHOW TABLES", 3, 3),
        ("SHOW\nTOPICS", 3, 24),
    ]
    assert parse("-- nothing\n/* at all */") == []


def test_long_lines_are_shown_around_the_place() -> None:
    with pytest.raises(SqlError) as raised:
        parse("SELECT " + "a, " * 500 + "b c d, " + "e, " * 500 + "f")
    _, shown, marks = str(raised.value).split("\n")
    assert shown.startswith("  ...")
    assert len(shown) < 120
    assert shown[marks.index("^")] == "d"


def test_tabs_and_other_characters_do_not_move_the_caret() -> None:
    with pytest.raises(SqlError) as raised:
        parse("PRINT\t'\x1b[2J'\tx")
    _, shown, marks = str(raised.value).split("\n")
    assert shown == "  PRINT ' [2J' x"
    assert marks.index("^") == shown.index("x")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'a'", "a"),
        ('"a"', "a"),
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ("'a\\tb\\u00e9\\101\\\\'", "a\tbéA\\"),
        ("'50\\%'", "50\\%"),
        ("r'\\d'", "\\d"),
        ("'\\UFFFFFFFF'", "UFFFFFFFF"),
        ("`a``b`", "a`b"),
    ],
)
def test_strings_are_spark_s(written: str, value: str) -> None:
    ((token,),) = split(written)
    assert token.value == value


def test_a_declaration_is_a_relation() -> None:
    (create,) = parse(
        "CREATE STREAM orders (id STRING KEY, at TIMESTAMP)"
        " WITH (event_time='at', watermark='1 hour', partitions=3)"
    )
    assert isinstance(create, CreateSource)
    assert relation_of(create) == Relation(
        "orders",
        RelationKind.STREAM,
        "orders",
        (Column("id", "string", is_key=True), Column("at", "timestamp")),
        "json",
        "at",
        "1 hour",
        3,
    )


@pytest.mark.parametrize(
    "call",
    [
        "reflect('java.lang.System', 'exit', 1)",
        "try_reflect ('java.lang.System', 'exit', 1)",
        "system.builtin.Java_Method('java.lang.System', 'exit', 1)",
        "`reflect`('java.lang.System', 'exit', 1)",
    ],
)
def test_no_query_runs_java(call: str) -> None:
    with pytest.raises(SqlError, match="runs programs of Java"):
        parse(f"SELECT a, {call} FROM b")
    assert parse("SELECT reflect, java_method AS `reflect` FROM b")
