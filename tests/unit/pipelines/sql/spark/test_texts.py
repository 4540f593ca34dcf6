"""Texts for Spark: only what is to change changes."""

import pytest

from moldau.pipelines.errors import PipelineError
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
        "SELECT c.rowtime AS rowtime FROM __moldau_0 c"
    )
    assert sides[0].column_names == ["url", "rowtime"]


@pytest.mark.parametrize(
    ("text", "rendered", "hidden"),
    [
        ("SELECT * FROM orders", "SELECT * FROM __moldau_0 AS orders", [()]),
        ("SELECT _offset FROM clicks", "SELECT _offset FROM __moldau_0 AS clicks", [("_offset",)]),
        (
            "SELECT count(*), * FROM clicks WHERE _OFFSET > 1 AND rowtime IS NULL",
            (
                "SELECT count(*), * EXCEPT (clicks.rowtime, clicks._offset) FROM __moldau_0 AS "
                "clicks WHERE _OFFSET > 1 AND rowtime IS NULL"
            ),
            [("rowtime", "_offset")],
        ),
        (
            "SELECT o.*, struct(*) FROM orders o JOIN clicks c ON o._offset = c._offset",
            (
                "SELECT o.* EXCEPT (o._offset), struct(* EXCEPT (o._offset, c._offset)) "
                "FROM __moldau_0 o JOIN __moldau_1 c ON o._offset = c._offset"
            ),
            [("_offset",), ("_offset",)],
        ),
        (
            "SELECT * FROM orders o LEFT SEMI JOIN clicks c ON o._offset = c._offset",
            (
                "SELECT * EXCEPT (o._offset) FROM __moldau_0 o LEFT SEMI JOIN __moldau_1 c "
                "ON o._offset = c._offset"
            ),
            [("_offset",), ("_offset",)],
        ),
        (
            "SELECT * EXCEPT (url) FROM clicks WHERE _topic = 'a'",
            "SELECT * EXCEPT (clicks._topic, url) FROM __moldau_0 AS clicks WHERE _topic = 'a'",
            [("_topic",)],
        ),
        (
            "SELECT * EXCEPT (url) FROM clicks",
            "SELECT * EXCEPT (url) FROM __moldau_0 AS clicks",
            [()],
        ),
        (
            "SELECT * FROM (SELECT * FROM clicks WHERE _headers.key IS NULL)",
            (
                "SELECT * FROM (SELECT * EXCEPT (clicks._headers) FROM __moldau_0 AS clicks "
                "WHERE _headers.key IS NULL)"
            ),
            [("_headers",)],
        ),
        (
            "SELECT * FROM orders o WHERE EXISTS (SELECT * FROM clicks WHERE url = o._topic)",
            (
                "SELECT * EXCEPT (o._topic) FROM __moldau_0 o WHERE EXISTS (SELECT * FROM "
                "__moldau_1 AS clicks WHERE url = o._topic)"
            ),
            [("_topic",), ()],
        ),
    ],
)
def test_columns_of_records_are_not_among_all(
    text: str, rendered: str, hidden: list[tuple[str, ...]]
) -> None:
    statement, sides = select(text)
    assert statement.query.render(ViewNames(sides)) == rendered
    assert [each.hidden for each in sides] == hidden
    # Who knows these columns by itself gets the text as it was.
    assert statement.query.render() == text


def test_columns_that_only_the_query_has_added_are_not_joined_by() -> None:
    with pytest.raises(PipelineError, match="NATURAL JOIN with _offset: name the columns to join"):
        select("SELECT a._offset FROM clicks a NATURAL JOIN clicks b")
