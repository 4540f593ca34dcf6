"""The FROM of queries with tables: what is joined by what, and what is refused."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.clauses import FromClause, read_from, refuse_distinct
from tests.unit.pipelines.sql.spark.relations_at_hand import select


def read(text: str) -> FromClause:
    statement, sides = select(text)
    return read_from(statement.query, sides)


def test_a_stream_with_two_tables() -> None:
    clause = read(
        "SELECT * FROM orders o LEFT JOIN users u ON o.user = u.user "
        "JOIN cities c ON (c.city = u.city)"
    )
    assert [side.called for side in clause.sides] == ["o", "u", "c"]
    assert [
        (join.how, [(side.called, name) for side, name in join.on]) for join in clause.joins
    ] == [
        ("left", [("o", "user")]),
        ("inner", [("u", "city")]),
    ]


def test_keys_of_several_columns_are_in_the_order_of_the_key() -> None:
    clause = read("SELECT 1 FROM orders o JOIN prices p ON p.item = o.id AND o.user = p.shop")
    assert [name for _, name in clause.joins[0].on] == ["user", "id"]


def test_a_table_alone_and_names_in_any_case() -> None:
    assert read("SELECT * FROM users").first.called == "users"
    clause = read("SELECT * FROM users U FULL OUTER JOIN cities c ON USER = c.CITY")
    assert clause.joins[0].how == "outer"
    assert [(side.called, name) for side, name in clause.joins[0].on] == [("U", "user")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT * FROM orders o JOIN users u ON o.user = u.name",
            ("ON o.user = u.name: a table is joined by its key: ON ... = u.user; what else is to "
            "hold comes into WHERE, and what is computed into a column of a stream before"),
        ),
        (
            "SELECT * FROM orders o JOIN users u ON o.user = u.user AND o.amount > 3",
            ("ON o.amount > 3: a table is joined by its key: ON ... = u.user; what else is to "
            "hold comes into WHERE, and what is computed into a column of a stream before"),
        ),
        (
            "SELECT * FROM orders o JOIN prices p ON o.user = p.shop",
            ("JOIN p: item is missing; a table is joined by its key: ON ... = p.shop AND "
            "... = p.item"),
        ),
        (
            "SELECT * FROM orders o JOIN users u ON user = 'ann'",
            "ON user: that is u.user or o.user; say which",
        ),
        (
            "SELECT * FROM orders o RIGHT JOIN users u ON o.user = u.user",
            "RIGHT JOIN u: of a stream and a table there are JOIN and LEFT JOIN",
        ),
        (
            "SELECT * FROM orders o FULL JOIN users u ON o.user = u.user",
            "FULL JOIN u: of a stream and a table there are JOIN and LEFT JOIN",
        ),
        (
            "SELECT * FROM users u CROSS JOIN cities c",
            "CROSS JOIN c: of two tables there are JOIN, LEFT JOIN and FULL JOIN",
        ),
        (
            "SELECT * FROM orders o JOIN users u USING (user)",
            "JOIN u: a table is joined by its key: ON ... = u.user",
        ),
        (
            "SELECT * FROM users u JOIN orders o ON o.user = u.user",
            ("FROM u: a table cannot be joined with a stream, but a stream with a table: put the "
            "stream first"),
        ),
        (
            "SELECT * FROM orders o JOIN clicks c ON o.id = c.url JOIN users u ON u.user = o.user",
            ("users: two streams and a table are two joins; write that of the streams to a stream "
            "of its own with CREATE STREAM ... AS SELECT, and join that with the table"),
        ),
        (
            "SELECT * FROM orders WHERE user IN (SELECT user FROM users)",
            ("users: in a query that runs for ever a table stands in FROM or JOIN, once; not in a "
            "subquery"),
        ),
        (
            "SELECT * FROM (SELECT * FROM users)",
            ("users: in a query that runs for ever a table stands in FROM or JOIN of its only "
            "SELECT; write a subquery's result to a stream or a table of its own"),
        ),
        (
            "SELECT user FROM users UNION SELECT city FROM cities",
            ("users, cities: in a query that runs for ever a table stands in FROM or JOIN of its "
            "only SELECT; write a subquery's result to a stream or a table of its own"),
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_says_what_can(text: str, said: str) -> None:
    with pytest.raises(PipelineError) as error:
        read(text)
    assert str(error.value) == said


def test_nothing_remembers_all_rows() -> None:
    for text, said in {
        "SELECT DISTINCT user FROM orders": "DISTINCT: a query that runs for ever has no last row",
        "SELECT id FROM orders UNION SELECT url FROM clicks": "UNION: .* there is UNION ALL",
        "SELECT id FROM orders EXCEPT SELECT url FROM clicks": "EXCEPT: ",
    }.items():
        with pytest.raises(PipelineError, match=said):
            refuse_distinct(select(text)[0].query)
    for text in (
        "SELECT count(DISTINCT user) FROM orders",
        "SELECT id FROM orders UNION ALL SELECT url FROM clicks",
    ):
        refuse_distinct(select(text)[0].query)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(PipelineError, match="there is no stream or table nothing"):
        read("SELECT * FROM nothing")
