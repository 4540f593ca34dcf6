"""Which columns of a result have the key."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateAs
from moldau.pipelines.sql.spark.clauses import select_of
from moldau.pipelines.sql.spark.results import (
    Chosen,
    keys_of_groups,
    keys_of_parts,
    keys_of_side,
)
from tests.unit.pipelines.sql.spark.relations_at_hand import select


def chosen(text: str, *names: str) -> Chosen:
    statement, sides = select(text)
    found = select_of(statement.query)
    assert found is not None
    return Chosen(found, sides, names)


@pytest.mark.parametrize(
    ("text", "names", "keys"),
    [
        ("SELECT user, sum(amount) AS s FROM orders GROUP BY user", ["user", "s"], ["user"]),
        ("SELECT o.user AS who, 1 AS x FROM orders o GROUP BY user", ["who", "x"], ["who"]),
        ("SELECT user AS who, 1 AS x FROM orders o GROUP BY O.USER", ["who", "x"], ["who"]),
        ("SELECT upper(user) AS u, 1 AS x FROM orders GROUP BY Upper(user)", ["u", "x"], ["u"]),
        ("SELECT upper(user) AS u, 1 AS x FROM orders GROUP BY u", ["u", "x"], ["u"]),
        ("SELECT 1 AS x, user FROM orders GROUP BY 2", ["x", "user"], ["user"]),
        ("SELECT trim(user), 1 AS x FROM orders GROUP BY 1", ["trim(user)", "x"], ["trim(user)"]),
        (
            "SELECT user, window, 1 AS x FROM orders GROUP BY window(at, '1 minute'), user",
            ["user", "window", "x"],
            ["window", "user"],
        ),
        (
            "SELECT session_window AS w, 1 AS x FROM orders GROUP BY session_window(at, '1 hour')",
            ["w", "x"],
            ["w"],
        ),
    ],
)  # fmt: skip
def test_groups_are_the_key(text: str, names: list[str], keys: list[str]) -> None:
    assert keys_of_groups(chosen(text, *names)) == keys


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT count(*) AS n FROM orders GROUP BY user", "GROUP BY user: it belongs"),
        ("SELECT 1 AS n FROM orders GROUP BY window(at, '1 hour')", "GROUP BY window: it belongs"),
        ("SELECT 1 AS n FROM orders GROUP BY ROLLUP (user)", "GROUP BY ROLLUP .user.: a query"),
    ],
)  # fmt: skip
def test_what_is_grouped_by_must_be_chosen(text: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        keys_of_groups(chosen(text, "n"))


def test_a_side_keeps_its_key_under_whatever_name() -> None:
    for text, names, keys in (
        ("SELECT * FROM orders", ("id", "user", "amount", "at"), ["id"]),
        ("SELECT amount, id AS number FROM orders", ("amount", "number"), ["number"]),
        ("SELECT o.* FROM orders o", ("id", "user", "amount", "at"), ["id"]),
        ("SELECT upper(id) AS id FROM orders", ("id",), []),
        ("SELECT amount FROM orders", ("amount",), []),
        ("SELECT u.city AS id FROM orders o JOIN users u ON o.user = u.user", ("id",), []),
        ("SELECT u.*, o.id FROM orders o JOIN users u ON o.user = u.user",
         ("user", "name", "city", "id"), ["id"]),
    ):  # fmt: skip
        found = chosen(text, *names)
        assert keys_of_side(found, found.sides[0]) == keys, text


def test_parts_must_be_chosen() -> None:
    (statement,) = parse(
        "CREATE STREAM s AS SELECT upper(user) AS u FROM orders PARTITION BY upper(user)"
    )
    assert isinstance(statement, CreateAs)
    found = chosen("SELECT upper(user) AS u FROM orders", "u")
    assert keys_of_parts(found, statement.partition_by) == ["u"]
    with pytest.raises(PipelineError, match=r"PARTITION BY upper.user.: it is the stream's key"):
        keys_of_parts(chosen("SELECT amount FROM orders", "amount"), statement.partition_by)
