"""What becomes of the text of a SELECT."""

import pytest
from sqlglot import exp

from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.queries import (
    AsOfTime,
    QueryNames,
    SelectQuery,
    TableUse,
    WithinUse,
)
from moldau.pipelines.sql.language.statements import CreateAs, InsertValues, Select
from tests.golden_text import FOLDER

EXPRESSIONS = (FOLDER / "sql" / "expressions.txt").read_text().splitlines()


class Versions(QueryNames):
    """A runner that has its own names for everything."""

    def table(self, use: TableUse) -> str:
        return f"v_{use.name}_{0 if use.as_of is None else 1}"

    def rowtime(self, use: TableUse | None) -> str:
        return "at" if use is not None and use.name == "orders" else "_timestamp"

    def window(self, use: TableUse | None) -> str:
        return "session_window" if use is not None and use.name == "visits" else "window"


def _query(text: str) -> SelectQuery:
    (statement,) = parse(text)
    assert isinstance(statement, Select | CreateAs)
    return statement.query


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_go_to_spark_as_they_are_written(expression: str) -> None:
    text = f"SELECT {expression} FROM t"
    assert _query(text).render() == text


def test_sqlglot_changes_what_some_expressions_mean() -> None:
    """Why the text is kept: if this fails, sqlglot has learnt something."""
    query = _query("SELECT parse_json(a), to_char(b, '999') FROM t")
    assert query.expression.sql("spark") == "SELECT a, CAST(b AS STRING) FROM t"


def test_strings_with_doubled_quotes_are_one() -> None:
    query = _query("SELECT 'it''s' AS a")
    assert [each.name for each in query.expression.find_all(exp.Literal)] == ["it's"]


def test_variants_are_taken_apart_with_a_colon() -> None:
    query = _query("SELECT a:b.c[0] FROM t")
    assert not list(query.expression.find_all(exp.Alias))


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT a FROM orders", "SELECT a FROM v_orders_0 AS orders"),
        ("SELECT o.a FROM orders o", "SELECT o.a FROM v_orders_0 o"),
        (
            "SELECT * FROM orders a JOIN orders VERSION AS OF '{\"0\":1}' b USING (id)",
            "SELECT * FROM v_orders_0 a JOIN v_orders_1  b USING (id)",
        ),
        ("SELECT rowtime FROM orders", "SELECT at AS rowtime FROM v_orders_0 AS orders"),
        (
            "SELECT max(ROWTIME) FROM orders, users",
            "SELECT max(orders.at) FROM v_orders_0 AS orders, v_users_0 AS users",
        ),
        (
            "SELECT u.rowtime r FROM orders, users u",
            "SELECT u._timestamp r FROM v_orders_0 AS orders, v_users_0 u",
        ),
        (
            "SELECT v.windowstart s FROM visits v ORDER BY windowend",
            "SELECT v.session_window.start s FROM v_visits_0 v ORDER BY session_window.end",
        ),
        (
            "SELECT x.rowtime FROM (SELECT * FROM orders) x",
            "SELECT x._timestamp AS rowtime FROM (SELECT * FROM v_orders_0 AS orders) x",
        ),
        ("SELECT f(xs, x -> x.rowtime) FROM t", "SELECT f(xs, x -> x.rowtime) FROM v_t_0 AS t"),
        ("SELECT `rowtime` FROM t", "SELECT `rowtime` FROM v_t_0 AS t"),
        ("SELECT * FROM `a.b`", "SELECT * FROM v_a.b_0 AS `a.b`"),
        (
            "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r",
            "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r",
        ),
        ("SELECT * FROM range(3)", "SELECT * FROM range(3)"),
        (
            "SELECT /*+ BROADCAST(t) */ a FROM t -- why not",
            "SELECT /*+ BROADCAST(t) */ a FROM v_t_0 AS t",
        ),
        (
            "SELECT t.a FROM t TABLESAMPLE (5 ROWS) WHERE b",
            "SELECT t.a FROM v_t_0 TABLESAMPLE (5 ROWS) AS t WHERE b",
        ),
        (
            "SELECT 1 FROM (SELECT a FROM t TABLESAMPLE ((9) PERCENT) REPEATABLE (7)) u",
            "SELECT 1 FROM (SELECT a FROM v_t_0 TABLESAMPLE ((9) PERCENT) REPEATABLE (7) AS t) u",
        ),
        (
            "SELECT x.a FROM t TABLESAMPLE (5 ROWS) AS x",
            "SELECT x.a FROM v_t_0 TABLESAMPLE (5 ROWS) AS x",
        ),
        ("SELECT a FROM t QUALIFY b > 1", "SELECT a FROM v_t_0 AS t QUALIFY b > 1"),
        ("FROM t |> WHERE a > 1 |> SELECT b", "FROM v_t_0 AS t |> WHERE a > 1 |> SELECT b"),
    ],
)
def test_runners_name_tables_and_pseudo_columns(text: str, rendered: str) -> None:
    assert _query(text).render(Versions()) == rendered


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, window FROM t GROUP BY window(at, '1 minute'), a",
        "SELECT window FROM totals GROUP BY window",
        "SELECT a, sum(b) OVER w FROM t WINDOW w AS (PARTITION BY a)",
        "SELECT window.start, count(*) FROM t GROUP BY window(at, '1 minute', '10 seconds')",
        "SELECT a FROM t GROUP BY session_window(at, '1 minute'), a WINDOW w AS (ORDER BY a)",
        "SELECT emit, emit changes FROM t",
        "SELECT a FROM t ORDER BY emit desc",
        "SELECT a FROM t ORDER BY t.emit desc",
        "CREATE STREAM x AS SELECT o.limit FROM o",
        "SELECT timestamp AS of FROM t",
        "SELECT * EXCEPT (a) FROM t",
        "SELECT a FROM `a.b`.`c d`, `e.f`",
    ],
)
def test_spark_has_these_words_too(text: str) -> None:
    assert _query(text).render() == text.removeprefix("CREATE STREAM x AS ")


def test_a_kept_result_has_its_window_once() -> None:
    clause = "FROM t WINDOW TUMBLING (SIZE 1 DAY) GROUP BY a"
    kept = _query(f"CREATE TABLE x AS SELECT a, count(*) {clause}")
    chosen = _query(f"CREATE TABLE x AS SELECT window, a, count(*) {clause}")
    asked = _query(f"SELECT a, count(*) {clause}")
    behind = "FROM t  GROUP BY window(rowtime, '1 day'), a"
    assert kept.render() == f"SELECT a, count(*), window {behind}"
    assert chosen.render() == f"SELECT window, a, count(*) {behind}"
    assert asked.render() == f"SELECT a, count(*) {behind}"


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        (
            "SELECT * FROM orders o JOIN paid WITHIN 1 HOUR ON o.id = paid.id OR o.x",
            (
                "SELECT * FROM v_orders_0 o JOIN v_paid_0 AS paid  ON paid._timestamp BETWEEN "
                "o.at - INTERVAL '1 hour' AND o.at + INTERVAL '1 hour' AND ( o.id = paid.id OR o.x)"
            ),
        ),
        (
            (
                "SELECT * FROM (SELECT a.* FROM a RIGHT JOIN orders b WITHIN (1 DAY, 0 SECONDS) "
                "GRACE PERIOD 2 DAYS ON right(a.x, 1) = b.emit) LEFT JOIN c ON true"
            ),
            (
                "SELECT * FROM (SELECT a.* FROM v_a_0 AS a RIGHT JOIN v_orders_0 b  ON "
                "b.at BETWEEN a._timestamp - INTERVAL '1 day' AND a._timestamp + INTERVAL "
                "'0 seconds' AND ( right(a.x, 1) = b.emit)) LEFT JOIN v_c_0 AS c ON true"
            ),
        ),
    ],
)
def test_within_is_a_bound_of_both_times(text: str, rendered: str) -> None:
    assert _query(text).render(Versions()) == rendered


def test_behind_within_keywords_may_be_names() -> None:
    on = "a.limit = b.x AND window = b.window AND left(a.x, 1) = 'y'"
    clause = "WINDOW TUMBLING (SIZE 1 DAY) GROUP BY c"
    text = _query(f"SELECT c FROM a JOIN b WITHIN 1 DAY ON {on} {clause}").render()
    assert f"AND ( {on})  GROUP BY window(a.rowtime, '1 day'), c" in text


def test_within_says_which_streams_wait_for_how_long() -> None:
    query = _query("SELECT 1 FROM a x FULL OUTER JOIN b WITHIN (1 DAY, 2 HOURS) ON x.i = b.i")
    assert query.within == (
        WithinUse(TableUse(("a",), "x"), TableUse(("b",)), "1 day", "2 hours", None, "FULL"),
    )
    query = _query("SELECT 1 FROM a JOIN s.b WITHIN 1 DAY GRACE PERIOD 0 SECONDS ON a.i = b.i")
    assert query.within == (
        WithinUse(TableUse(("a",)), TableUse(("s", "b")), "1 day", "1 day", "0 seconds", ""),
    )
    percentile = "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t"
    assert _query(percentile).within == ()


def test_values_are_understood() -> None:
    (statement,) = parse("INSERT INTO t VALUES ('it''s', -1, NULL, 1 + 1 /* two */, r'\\d')")
    assert isinstance(statement, InsertValues)
    ((text, number, nothing, term, raw),) = statement.rows
    assert text.expression == exp.Literal.string("it's")
    assert number.expression == exp.Neg(this=exp.Literal.number(1))
    assert nothing.expression == exp.Null()
    assert (term.text, type(term.expression)) == ("1 + 1", exp.Add)
    assert raw.expression == exp.Literal.string("\\d")


@pytest.mark.parametrize(
    ("time", "ms"),
    [
        ("1970-01-01 00:00:01.001", 1_001),
        ("1970-01-01 01:00:00+01:00", 0),
        # What is before it begins a millisecond earlier.
        ("1970-01-01 00:00:00.0001", 1),
        ("1969-12-31 23:59:59.9999", 0),
    ],
)
def test_times_are_milliseconds_as_those_of_records(time: str, ms: int) -> None:
    as_of = _query(f"SELECT * FROM t TIMESTAMP AS OF '{time}'").tables[0].as_of
    assert isinstance(as_of, AsOfTime)
    assert as_of.ms == ms
