"""Which SELECTs a view answers, and what it is asked for."""

import pytest

from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.lookups.key_lookups import KeyLookup, read_lookup
from moldau.pipelines.sql.ports import DeclinedError
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

WINDOW = Column("window", "struct<start: timestamp, end: timestamp>", is_key=True)
USERS = Relation(
    "users",
    RelationKind.TABLE,
    "users",
    (Column("user", "string", is_key=True), Column("city", "string")),
)
TOTALS = Relation(
    "totals",
    RelationKind.TABLE,
    "totals",
    (Column("user", "string", is_key=True), WINDOW, Column("total", "double")),
)
STOCK = Relation(
    "stock",
    RelationKind.TABLE,
    "stock",
    (Column("shop", "int", is_key=True), Column("item", "string", is_key=True), Column("n", "int")),
)


def lookup(text: str, table: Relation) -> KeyLookup:
    (select,) = parse(text)
    assert isinstance(select, Select)
    return read_lookup(select, table)


def test_a_key_and_all_columns() -> None:
    found = lookup("SELECT * FROM users WHERE user = 'ann'", USERS)
    assert found == KeyLookup("ann", None, None, (("user", 0), ("city", 1)))
    assert lookup("SELECT * FROM users u WHERE 'it''s' = u.USER", USERS).key == "it's"


def test_some_columns_and_other_names() -> None:
    found = lookup("SELECT CITY, u.user AS who FROM users u WHERE (u.user = 'ann')", USERS)
    assert found.columns == (("CITY", 1), ("who", 0))


def test_a_key_of_several_columns() -> None:
    found = lookup("SELECT n FROM stock WHERE item = 'a' AND shop = -1", STOCK)
    assert found.key == {"item": "a", "shop": -1}


@pytest.mark.parametrize(
    ("condition", "start", "until"),
    [
        ("", None, None),
        ("AND windowstart >= '2026-01-01 00:01:00'", "2026-01-01T00:01:00+00:00", None),
        (
            "AND window.start > TIMESTAMP '2026-01-01 00:01:00Z'",
            "2026-01-01T00:01:00.000001+00:00",
            None,
        ),
        ("AND totals.window.start < '2026-01-01'", None, "2026-01-01T00:00:00+00:00"),
        (
            "AND windowstart = '2026-01-01' AND windowstart <= '2026-02-01'",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:00.000001+00:00",
        ),
    ],
)
def test_ranges_of_windows(condition: str, start: str | None, until: str | None) -> None:
    found = lookup(f"SELECT * FROM totals WHERE user = 'ann' {condition}", TOTALS)
    assert (found.key, found.start, found.until) == ("ann", start, until)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT * FROM users", "it is asked by key, and user = ... is not in WHERE"),
        ("SELECT * FROM users WHERE user = 'a' OR user = 'b'", "is not a key's value"),
        ("SELECT * FROM users WHERE user = 1", "user = 1 is not a key's value"),
        ("SELECT * FROM users WHERE user = 'a' AND user = 'b'", "is not a key's value"),
        ("SELECT * FROM users WHERE user = 'a' AND city = 'b'", "city = 'b' is not"),
        ("SELECT upper(city) FROM users WHERE user = 'a'", "is computed, or no column"),
        ("SELECT town FROM users WHERE user = 'a'", "town is computed, or no column"),
        ("SELECT count(*) FROM users WHERE user = 'a'", "is computed, or no column"),
        ("SELECT * FROM users WHERE user = 'a' LIMIT 1", "nothing behind it"),
        ("SELECT DISTINCT city FROM users WHERE user = 'a'", "nothing behind it"),
    ],
)
def test_what_is_no_lookup(text: str, why: str) -> None:
    with pytest.raises(DeclinedError) as refused:
        lookup(text, USERS)
    assert why in str(refused.value)
