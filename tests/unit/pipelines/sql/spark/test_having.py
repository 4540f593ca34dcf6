"""HAVING as a column of the rows: names in it mean what they mean behind the groups."""

import pytest
from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.spark.having import having_as_column
from moldau.pipelines.sql.spark.sides import CHOSEN


@pytest.mark.parametrize(
    ("text", "chosen", "condition"),
    [
        ("user, count(*) AS n FROM t GROUP BY user HAVING count(*) > 1",
         "user, count(*) AS n", "count(*) > 1"),
        # A name of the result is what it stands for, but not inside of an aggregate.
        ("user, max(amount) amount FROM t GROUP BY user HAVING amount > 1 AND sum(amount) < 5",
         "user, max(amount) amount", "(max(amount)) > 1 AND sum(amount) < 5"),
        ("k % 2 AS k, count(*) FROM t GROUP BY k % 2 HAVING `k` = 1 OR t.k IS NULL OR odd_agg(k)",
         "k % 2 AS k, count(*)", "(k % 2) = 1 OR t.k IS NULL OR odd_agg(k)"),
        ("f(a, 'FROM x'), b AS `c d` FROM t GROUP BY ALL HAVING a IS DISTINCT FROM `c d`",
         "f(a, 'FROM x'), b AS `c d`", "a IS DISTINCT FROM (b)"),
    ],
)  # fmt: skip
def test_what_it_becomes(text: str, chosen: str, condition: str) -> None:
    (statement,) = parse(f"SELECT {text}")
    assert isinstance(statement, Select)
    select = statement.query.expression
    assert isinstance(select, exp.Select)
    source = text[len(chosen) : text.index("HAVING")].strip()
    column = f"coalesce(({condition}), false) AS {CHOSEN}"
    assert having_as_column(f"SELECT {text}", select) == f"SELECT {chosen}, {column} {source}"


def test_a_select_behind_others_and_one_that_is_turned_round() -> None:
    text = "WITH a AS (SELECT 1 AS b, 2 AS c FROM t) SELECT b, sum(c) AS c FROM a GROUP BY b"
    (statement,) = parse(f"{text} HAVING c > 1")
    assert isinstance(statement, Select)
    select = statement.query.expression
    assert isinstance(select, exp.Select)
    column = f"sum(c) AS c, coalesce(((sum(c)) > 1), false) AS {CHOSEN}"
    assert having_as_column(f"{text} HAVING c > 1", select) == text.replace("sum(c) AS c", column)
    with pytest.raises(PipelineError, match="SELECT stands before FROM"):
        having_as_column("FROM a SELECT b GROUP BY b HAVING b > 1", select)


def test_what_is_behind_it_stays() -> None:
    text = "SELECT a FROM t GROUP BY a HAVING a > (SELECT max(b) FROM u HAVING true) ORDER BY a"
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    select = statement.query.expression
    assert isinstance(select, exp.Select)
    assert having_as_column(text, select) == (
        f"SELECT a, coalesce((a > (SELECT max(b) FROM u HAVING true)), false) AS {CHOSEN} "
        "FROM t GROUP BY a  ORDER BY a"
    )
