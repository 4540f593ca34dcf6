"""Aggregates are taken out of a text, and what is around them stays as it is."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.clauses import select_of
from moldau.pipelines.sql.spark.grouped_texts import (
    AggregateCall,
    GroupedTexts,
    check_functions,
    take_out_aggregates,
)
from moldau.pipelines.sql.spark.texts import take_apart
from tests.unit.pipelines.sql.spark.relations_at_hand import select


def taken_out(text: str, *grouped: str) -> GroupedTexts:
    statement, _ = select(text)
    node = select_of(statement.query)
    assert node is not None
    check_functions(node)
    return take_out_aggregates(take_apart(text), node, grouped)


def test_what_is_around_aggregates_stays() -> None:
    found = taken_out(
        "SELECT city, 1.5 * SUM(coalesce(length(name), 0)) + count( * ) AS n, 'sum(x)' t, "
        "u.max, avg(DISTINCT_) FROM users u GROUP BY city"
    )
    assert found.items == [
        "city",
        "1.5 * __moldau_a0 + __moldau_a1",
        "'sum(x)'",
        "u.max",
        "__moldau_a2",
    ]
    assert found.calls == [
        AggregateCall("sum", "coalesce(length(name), 0)"),
        AggregateCall("count", None),
        AggregateCall("avg", "DISTINCT_"),
    ]
    assert found.having is None


def test_having_may_say_what_a_column_is_called() -> None:
    found = taken_out(
        "SELECT city, max(name) AS upper, min(name) AS m FROM users GROUP BY city "
        "HAVING upper > 'a' AND `UPPER` < city AND max(name) <> u.upper AND "
        "upper(city) > avg(name)",
        "city",
    )
    assert found.having == (
        "(__moldau_a0) > 'a' AND (__moldau_a0) < city AND __moldau_a0 <> u.upper AND "
        "upper(city) > __moldau_a2"
    )
    assert len(found.calls) == 3
    # A column that is grouped by goes before what something else is called.
    found = taken_out(
        "SELECT city, max(name) AS city FROM users GROUP BY city HAVING city > 'a'", "city"
    )
    assert found.having == "city > 'a'"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count(DISTINCT name)", r"count\(DISTINCT name\): of a table's groups there are"),
        ("count(name, city)", r"count\(name, city\): .* of one expression each"),
        ("max(name) FILTER (WHERE city > 'a')", r"max\(name\) FILTER: "),
        ("collect_list(name)", r"collect_list\(name\): of a table's groups there are count, sum"),
        ("max_by(name, user)", r"max_by\(name, user\): "),
    ],
)
def test_what_cannot_be_taken_back_is_refused(text: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        taken_out(f"SELECT city, {text} AS n FROM users GROUP BY city")
