"""Texts for Spark: only what is to change changes."""

import pytest

from moldau.pipelines.sql.spark.sides import ViewNames
from moldau.pipelines.sql.spark.texts import Parts, as_template, joined_source, take_apart
from tests.unit.pipelines.sql.spark.relations_at_hand import select


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT a FROM t", Parts("SELECT a", None, "", "")),
        (
            ("SELECT extract(year FROM at), a IS DISTINCT FROM b FROM t WHERE 'WHERE' = (SELECT 1 "
            "FROM z WHERE 1) GROUP BY a HAVING a > 1"),
            Parts(
                "SELECT extract(year FROM at), a IS DISTINCT FROM b",
                "'WHERE' = (SELECT 1 FROM z WHERE 1)",
                "",
                "GROUP BY a HAVING a > 1",
            ),
        ),
        (
            "SELECT a FROM t JOIN u ON t.a = u.a LATERAL VIEW explode(b) AS c WHERE a > 1",
            Parts("SELECT a", "a > 1", "LATERAL VIEW explode(b) AS c", ""),
        ),
        ("SELECT a FROM t GROUP BY a", Parts("SELECT a", None, "", "GROUP BY a")),
    ],
)  # fmt: skip
def test_a_select_is_taken_apart(text: str, parts: Parts) -> None:
    assert take_apart(text) == parts


def test_a_select_is_put_together() -> None:
    parts = take_apart("SELECT a FROM t LATERAL VIEW explode(b) AS c WHERE a > 1 ORDER BY a")
    assert parts.filtered("v") == (
        "SELECT a FROM v LATERAL VIEW explode(b) AS c WHERE a > 1 ORDER BY a"
    )
    assert parts.over("v", "x") == "SELECT a, x FROM v LATERAL VIEW explode(b) AS c ORDER BY a"


def test_sides_become_generated_columns_with_their_names() -> None:
    _, sides = select("SELECT * FROM clicks `my clicks` JOIN users ON url = users.user")
    assert joined_source(sides) == (
        "__moldau_joined LATERAL VIEW inline(array(__moldau_0)) `my clicks` AS `url` "
        "LATERAL VIEW inline(array(__moldau_1)) `users` AS `user`, `name`, `city`"
    )


def test_views_stand_in_braces_and_other_braces_twice() -> None:
    text = "SELECT '{a}', '__moldau_0' FROM __moldau_0 AS orders"
    template = as_template(text, ["__moldau_0"])
    assert template == "SELECT '{{a}}', '__moldau_0' FROM {__moldau_0} AS orders"


def test_pseudo_columns_are_what_there_is() -> None:
    statement, sides = select("SELECT rowtime FROM orders")
    assert statement.query.render(ViewNames(sides)) == (
        "SELECT at AS rowtime FROM __moldau_0 AS orders"
    )
    statement, sides = select("SELECT c.rowtime FROM clicks c")
    assert statement.query.render(ViewNames(sides)) == (
        "SELECT c.__moldau_rowtime AS rowtime FROM __moldau_0 c"
    )
    assert sides[0].has_rowtime
    assert sides[0].column_names == ["url", "__moldau_rowtime"]
