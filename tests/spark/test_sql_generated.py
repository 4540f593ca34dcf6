"""Statements from Spark's grammar and list of functions, asked of both engines.

MOLDAU_SQL_STATEMENTS says how many; MOLDAU_EXPLORE draws others each time. What the local engine
answers has Spark's values, types and names, what it calls an error is one in Spark, and it answers
at least half.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.queries import QueryNames, TableUse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.local.aggregates import (
    AGGREGATES,
    DISTINCT_AGGREGATES,
    WINDOW_FUNCTIONS,
)
from moldau.pipelines.sql.local.functions import FUNCTIONS
from tests.spark.statements import signatures
from tests.spark.statements.answers import LocalTable, SparkAnswers, differences, open_local
from tests.spark.statements.statements import FOREIGN, Shape, Statement, StatementMaker
from tests.spark.statements.table import COLUMNS, MORE_ROWS, ROWS, json_rows, read_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = list[str]
Note = Callable[[str, object], None]

STATEMENTS: Final = int(os.environ.get("MOLDAU_SQL_STATEMENTS", "300"))
SUPPORTED: Final = {*FUNCTIONS, *AGGREGATES, *DISTINCT_AGGREGATES, *WINDOW_FUNCTIONS}
CALLS_MIN = 5 if STATEMENTS >= 5000 else 0
NOW: Final = {"now", "current_timestamp", "current_date", "curdate", "window"}
"""Answered here, and other than what is on the lists."""
TOGETHER: Final = 40
QUICK: Final = {
    # Compiling and planning each statement takes longer than its few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
LAZY: Final = re.compile(r"SQLSTATE: 22\d\d\d")
"""An error of a value. Spark computes rows that LIMIT or WHERE leaves out afterwards."""
OWN: Final = re.compile(r"INTERNAL_ERROR|SQLSTATE: XX")
"""A fault of Spark's own: a window over FILTER (WHERE false) is one."""

PINNED: Final = r"""
SELECT b = b IN (true), b = b < b, b = b BETWEEN b AND b, NOT b = b IS NULL, i > 3 <=> b FROM t
SELECT n % 2 = 1 AND b AND i > 3 AND s LIKE '%a%' AND true FROM t
SELECT i + 1 || s || n * 2, - i + 1, - -5, -(5), -2147483648, -9223372036854775808 FROM t
SELECT 1L, 2S, 3Y, 1.5D, -0.0D, 1e3, 1E-5, 1e10, .5, 5., 00.50, 0.001D, 12345678.9D FROM t
SELECT i < 1.5, i > 1.5, 1.5 < i, 1.5 >= i, i <= -0.05, sm > 40000.5, i = 1.5, 0 < 1.5 FROM t
SELECT left(s, NULL), right(s, NULL), repeat(t, NULL), lpad(s, NULL), left('ab', sm) FROM t
SELECT ceil(ceil(dc)), floor(round(-0.05)), CAST(00.50 AS string), CAST(0.05 AS string) FROM t
SELECT CAST(-2 AS smallint) - 2.5, 5 - dc, 5L * dc, -(5) + dc FROM t
SELECT least(- f, f), greatest(- f, f), least(- d, d), nullif(-0.0D, 1D) FROM t
SELECT CAST(i AS bigint), CAST(st.x AS bigint), CAST(i + 1 AS bigint), CAST(i AS int) + 1 FROM t
SELECT i::bigint, date(ts), date(ts) = dt, CAST(NULL AS int), CAST(CAST(i AS bigint) AS int) FROM t
SELECT i IS NOT NULL, NOT i IS NULL, NOT (i IS NULL), b IS NOT TRUE, i IS DISTINCT FROM l FROM t
SELECT i AS p, p, p + 1, CAST(p AS string), st AS q, q.x, q.x + 1 FROM t
SELECT extract(YEAR FROM ts), extract(week FROM dt), position('c' IN s), position('c', s) FROM t
SELECT substring(s FROM 2 FOR 3), substr(s, 2), trim(LEADING FROM s), IF(b, 1, 2), isnull(b) FROM t
SELECT ts + INTERVAL 1 WEEK, dt - INTERVAL '2' DAY, ts + INTERVAL 250 MILLISECONDS FROM t
SELECT INTERVAL 1 DAY + ts, dt + INTERVAL 1 MONTH, ts - INTERVAL '3' SECOND FROM t
SELECT DATE '2026-1-5', TIMESTAMP '2026-01-01 10:00:00.50', TIMESTAMP '2026-01-01' < ts FROM t
SELECT 'a\tb', 'it''s', "q", 'a\\b', 'a\'b', 'ž', '\u0041', '%' FROM t
SELECT i, n FROM t ORDER BY (2) DESC
SELECT i, n FROM t ORDER BY -(2), n
SELECT b, count(*) FROM t GROUP BY (1)
SELECT a.n FROM t a, t b JOIN t c ON a.n = c.n WHERE a.n = b.n
SELECT n FROM t UNION ALL SELECT i FROM t INTERSECT SELECT n FROM t
SELECT window, window.start, window.end, count(*) FROM t GROUP BY window(ts, '1 day')
SELECT lag(s, 1, 'a, b') OVER (ORDER BY n), lead(i, 0) OVER (ORDER BY n) FROM t
SELECT sum(i) OVER (ORDER BY n ROWS 2 PRECEDING), max(n) FILTER (WHERE b) OVER () FROM t
SELECT (SELECT max(i) FROM t), EXISTS (SELECT 1 FROM t), st.y.z, named_struct('a', i).a FROM t
"""
"""What was once not as in Spark, and is answered."""

LEFT: Final = r"""
SELECT i < 99999999999999999999.5 FROM t
SELECT DISTINCT - d FROM t
SELECT - d, count(*) FROM t GROUP BY - d
SELECT - d FROM t EXCEPT ALL SELECT 1D
SELECT i, n FROM t ORDER BY +2 DESC
SELECT +i FROM t
SELECT stddev_pop(d) OVER (PARTITION BY n) FROM t
SELECT var_pop(CAST(i AS float)) FROM t
SELECT - -9223372036854775808 FROM t
SELECT md5(l) FROM t
SELECT unix_seconds(dt), unix_millis(dt), unix_micros(dt) FROM t
SELECT count(DISTINCT i) OVER () FROM t
SELECT if(true, dt, 'A') FROM t
SELECT b IS NULL = b FROM t
SELECT b = NOT b FROM t
SELECT n, (SELECT count(*) FROM t y WHERE y.i < x.i) FROM t x
SELECT row_number() OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT lag(i) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t
"""
"""What was once answered, and is Spark's to answer or to refuse."""


@pytest.fixture(scope="module")
def rows(spark: "SparkSession") -> pa.Table:
    """The table as Spark has read it."""
    return read_by_spark(spark, json_rows(ROWS + MORE_ROWS)).select(*COLUMNS).toArrow()


@pytest.fixture(scope="module")
def local(rows: pa.Table) -> Iterator[LocalTable]:
    with open_local(rows, COLUMNS) as opened:
        yield opened


@pytest.fixture(scope="module")
def theirs(rows: pa.Table, spark: "SparkSession") -> SparkAnswers:
    # A session of its own has settings of its own.
    session = spark.newSession()
    for name, value in QUICK.items():
        session.conf.set(name, value)
    session.createDataFrame(rows).createOrReplaceTempView("t")
    session.table("t").createOrReplaceTempView("other_t")
    return SparkAnswers(session)


@pytest.fixture
def seed(record_property: Note) -> int:
    chosen = random.randrange(1 << 32) if "MOLDAU_EXPLORE" in os.environ else 17
    record_property("seed", chosen)
    return chosen


def _lines(texts: str) -> list[str]:
    return texts.strip().splitlines()


def test_what_was_once_different_is_the_same(local: LocalTable, theirs: SparkAnswers) -> None:
    found = []
    for text in _lines(PINNED):
        ours, other = local.answer(text), theirs.ask(text)
        if ours.rows is None or isinstance(other, str):
            found.append(f"{text}\n  {ours.left or ours.error}; Spark: {other}")
        else:
            is_ordered = "ORDER BY" in text.partition(" FROM t")[2]
            found += [
                f"{text}\n  {e}" for e in differences(ours.rows, other, is_ordered=is_ordered)
            ]
    assert not found, "\n".join(found)


def test_what_was_once_answered_is_left_to_spark(local: LocalTable) -> None:
    assert [text for text in _lines(LEFT) if not local.answer(text).left] == []


def test_clauses_that_only_spark_knows(local: LocalTable, theirs: SparkAnswers) -> None:
    found, answered = [], []
    for text in (each.format(item="i + 1") for each in FOREIGN):
        ours = local.answer(text)
        if ours.rows is None:
            # It is a statement of Spark's all the same, and no error here.
            assert ours.left, (text, ours.error)
            theirs.check(text)
            continue
        answered.append(text)
        other = theirs.ask(text)
        assert not isinstance(other, str), (text, other)
        found += [f"{text}\n  {e}" for e in differences(ours.rows, other, is_ordered=False)]
    assert not found, "\n".join(found)
    assert len(answered) < len(FOREIGN) // 4


def test_what_spark_is_asked_means_what_the_user_wrote(theirs: SparkAnswers) -> None:
    found = []
    for text in (each.format(item="i + 1") for each in FOREIGN):
        if text.startswith("TABLE "):
            continue  # not a statement here: the error says SELECT
        (statement,) = parse(text)
        assert isinstance(statement, Select), text
        as_written, as_sent = theirs.ask(text), theirs.ask(statement.query.render(_OtherNames()))
        if isinstance(as_written, str) or isinstance(as_sent, str):
            found.append(f"{text}\n  {as_written}\n  {as_sent}")
        else:
            found += [f"{text}\n  {e}" for e in differences(as_sent, as_written, is_ordered=False)]
    assert not found, "\n".join(found)


class _OtherNames(QueryNames):
    """Calls the table what no statement does, as the engine on Spark does."""

    def table(self, use: TableUse) -> str:
        return f"other_{use.name}"


def test_every_function_of_the_list_can_be_made() -> None:
    made = {*signatures.SIGNATURES, *signatures.AGGREGATES, *signatures.WINDOWED}
    assert made == SUPPORTED


def test_made_statements_are_what_they_are_in_spark(
    local: LocalTable, theirs: SparkAnswers, seed: int, record_property: Note
) -> None:
    others = [name for name in theirs.functions() if name not in SUPPORTED | NOW]
    assert len(others) > 200
    made = list(islice(StatementMaker(seed, others).statements(), STATEMENTS))
    run = _Run(local, theirs)
    run.ask(made)
    assert not run.found, "\n".join(run.found)
    record_property("answered", len(run.answered))
    record_property("left to Spark", run.left)
    record_property("errors in both", run.errors)
    assert len(run.answered) >= STATEMENTS // 2
    calls = Counter(
        name.lower() for each in run.answered for name in re.findall(r"\b(\w+)\(", each.text)
    )
    assert [name for name in sorted(SUPPORTED) if calls[name] < CALLS_MIN] == []


class _Run:
    """Statements that are asked of both, and what was not the same."""

    def __init__(self, local: LocalTable, theirs: SparkAnswers) -> None:
        self._local = local
        self._theirs = theirs
        self.found: Found = []
        self.answered: list[Statement] = []
        """With rows that were compared."""
        self.left = self.errors = 0

    def ask(self, made: list[Statement]) -> None:
        """Ask the local engine, and Spark what was answered."""
        answers: dict[Shape, list[tuple[Statement, pa.Table]]] = {}
        for each in made:
            answer = self._local.answer(each.text)
            if answer.rows is not None:
                answers.setdefault(each.shape, []).append((each, answer.rows))
            elif answer.error:
                self._check_error(each, answer.error)
            else:
                self.left += 1
        for pairs in answers.values():
            for at in range(0, len(pairs), TOGETHER):
                self._compare(pairs[at : at + TOGETHER])

    def _check_error(self, statement: Statement, error: str) -> None:
        self.errors += 1
        other = self._theirs.ask(statement.text)
        if not isinstance(other, str):
            self.found.append(f"{statement.text}\n  {error}, and Spark answers")

    def _compare(self, pairs: list[tuple[Statement, pa.Table]]) -> None:
        others = self._theirs.ask_all([each for each, _ in pairs])
        for (statement, ours), other in zip(pairs, others, strict=True):
            if isinstance(other, str):
                is_lazy = statement.shape is Shape.QUERY and LAZY.search(other)
                if not is_lazy and not OWN.search(other):
                    self.found.append(f"{statement.text}\n  Spark: {other}")
                continue
            is_alone = statement.shape is Shape.ROWS
            unlike = differences(
                ours, other, is_ordered=statement.is_ordered or is_alone,
                tolerance=0 if is_alone else 1e-12,
            )  # fmt: skip
            self.found += [f"{statement.text}\n  {each}" for each in unlike]
            if ours.num_rows:
                self.answered.append(statement)
