"""Streams that are joined with streams: what bounds them, and what they are late by."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.joined_streams import (
    leading_side,
    refuse_unbounded,
    watermark_of,
    watermarks_of,
)
from tests.unit.pipelines.sql.spark.relations_at_hand import select


def late(text: str) -> dict[str, str]:
    statement, sides = select(text)
    found = watermarks_of(statement.query, sides)
    return {use.called: watermark for use, watermark in found.items()}


def test_how_late_rows_may_be() -> None:
    # The stream says it, the query says it, or it is as in ksqlDB.
    inner = "SELECT 1 FROM orders o JOIN clicks c WITHIN 1 HOUR ON o.id = c.url"
    assert late(inner) == {"o": "10 seconds", "c": "24 hours"}
    said = inner.replace("1 HOUR", "1 HOUR GRACE PERIOD 2 MINUTES")
    assert late(said) == {"o": "2 minutes", "c": "2 minutes"}
    assert late("SELECT 1 FROM orders") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT 1 FROM orders o JOIN users u WITHIN 1 HOUR ON o.user = u.user",
            "WITHIN: u is a table, which a row is joined with as it is then; leave WITHIN out",
        ),
        (
            "SELECT 1 FROM orders o LEFT JOIN clicks c WITHIN 1 HOUR ON o.id = c.url",
            ("LEFT JOIN ... WITHIN: a row without a counterpart is written when none can come any "
            "more; say how late rows of c may be, as in WITHIN 1 HOUR GRACE PERIOD 5 MINUTES, or "
            "WITH (watermark='5 minutes') where it is declared"),
        ),
        (
            ("SELECT 1 FROM orders JOIN clicks WITHIN 1 HOUR ON id = url UNION ALL SELECT 1 FROM "
            "orders JOIN clicks WITHIN 1 HOUR GRACE PERIOD 1 DAY ON id = url"),
            ("orders has GRACE PERIOD 10 seconds and 1 day in one query: say the same of both"),
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_within(text: str, said: str) -> None:
    with pytest.raises(PipelineError) as error:
        late(text)
    assert str(error.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM orders o JOIN clicks c ON o.id = c.url",
        "SELECT 1 FROM orders o, clicks c WHERE o.id = c.url AND o.at > now()",
        "SELECT 1 FROM orders a JOIN orders b ON a.id = b.id AND a.amount < b.amount",
        "SELECT 1 FROM clicks JOIN (SELECT a.id FROM orders a JOIN orders b USING (id)) ON true",
    ],
)
def test_rows_that_would_wait_for_ever(text: str) -> None:
    statement, sides = select(text)
    with pytest.raises(PipelineError, match=r"JOIN \w+: without a bound of time every row"):
        refuse_unbounded(statement.query, sides)


def test_rows_that_meet_all_others() -> None:
    statement, sides = select("SELECT 1 FROM orders o JOIN orders p WITHIN 1 HOUR ON o.id < p.id")
    with pytest.raises(PipelineError) as error:
        refuse_unbounded(statement.query, sides)
    assert str(error.value) == (
        "JOIN p: two streams are joined by columns that are equal, as in ON a.id = b.id; what else "
        "is to hold comes behind AND"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM orders o JOIN clicks c WITHIN 1 HOUR ON o.id = c.url",
        "SELECT 1 FROM orders a JOIN orders b ON a.id = b.id AND b.at BETWEEN a.at AND a.at + x",
        "SELECT 1 FROM orders a, orders b WHERE a.id = b.id AND b.at - a.at < INTERVAL 1 HOUR",
        "SELECT 1 FROM orders o JOIN clicks c ON o.id = c.url AND c.rowtime = o.rowtime",
        "SELECT 1 FROM orders a JOIN orders b USING (id, at)",
        "SELECT 1 FROM (SELECT * FROM orders) a JOIN clicks c ON a.id = c.url",
        "SELECT 1 FROM orders",
    ],
)
def test_rows_that_wait_for_a_while(text: str) -> None:
    statement, sides = select(text)
    refuse_unbounded(statement.query, sides)


@pytest.mark.parametrize(
    ("join", "leads", "watermark"),
    [
        ("JOIN", "o", "10 seconds 2 hours"),
        ("LEFT JOIN", "o", "10 seconds 2 hours"),
        ("RIGHT JOIN", "p", "10 seconds 1 hour"),
    ],
)
def test_whose_key_and_time_a_result_has(join: str, leads: str, watermark: str) -> None:
    within = "WITHIN (1 HOUR, 2 HOURS)"
    statement, sides = select(f"SELECT 1 FROM orders o {join} orders p {within} ON o.id = p.user")
    leading = leading_side(statement.query, sides)
    assert leading is not None
    assert leading.called == leads
    # A row has waited for its counterpart for as long as that may come later.
    assert watermark_of(statement.query, leading) == watermark


def test_of_a_full_join_no_side_is_always_there() -> None:
    statement, sides = select("SELECT 1 FROM orders o FULL JOIN orders p ON o.id = p.id")
    assert leading_side(statement.query, sides) is None
    statement, sides = select("SELECT 1 FROM orders o JOIN clicks c ON o.id = c.url")
    leading = leading_side(statement.query, sides)
    assert leading is not None
    assert watermark_of(statement.query, leading) == "10 seconds"
