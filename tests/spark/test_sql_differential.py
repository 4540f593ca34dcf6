"""The engine for small questions beside Spark: the same rows, and the same types."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from moldau.client.producer import Producer
from moldau.pipelines.decoding.batches import DecodeError
from moldau.pipelines.decoding.json_columns import decode_json
from moldau.pipelines.sql.local.aggregates import (
    AGGREGATES,
    DISTINCT_AGGREGATES,
    WINDOW_FUNCTIONS,
)
from moldau.pipelines.sql.local.answering import LocalEngine
from moldau.pipelines.sql.local.functions import FUNCTIONS
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.testing.broker import Broker
from tests.spark.statements.answers import differences, equal
from tests.spark.statements.table import COLUMNS, ROWS, json_rows, read_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = """
i + 1; i - l; i * 2; i / 2; d / 4; i % 3; l % 2; -i; i div 2; l div -2; sm + sm; sm * 2; f + 1
f * f; d + i; d - dc; dc + dc; dc - 1; dc * 2; dc * dc; dc + i; dc * 1.5; d * 1.5; d > 10.5
i = l; i <=> l; s = t; s < t; b AND i > 0; b OR i > 0; NOT b; i BETWEEN 0 AND 7; i IN (7, 12)
s IN ('12', ''); i IS NULL; b IS TRUE; i NOT IN (7, 12)
i NOT BETWEEN 0 AND 7; b IS NOT TRUE; i IS NOT NULL; b IS NOT FALSE; i IS NOT DISTINCT FROM l
i IS DISTINCT FROM l; NOT EXISTS (SELECT 1 FROM t WHERE n > 9)
 s LIKE '%m%'; s NOT LIKE 'a_'; ts > '2025-01-01'
dt >= '2024-12-30'; dt < ts; CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE s END
CASE i WHEN 7 THEN 1 WHEN 0 THEN 2 END; CASE WHEN b THEN i ELSE d END; if(b, i, l)
coalesce(i, 0); coalesce(dc, 0); nvl(s, 'none'); ifnull(t, s); nullif(i, 7); nvl2(b, 1, 2)
greatest(i, l); least(i, l, 5); greatest(d, 1.0D); least(d, f); greatest(s, t); isnull(b)
isnotnull(b); isnan(d); abs(i); abs(d); abs(dc); ceil(f / 3); floor(f / 3); ceil(dc)
floor(dc); ceil(i); ceiling(f); round(d, 2); round(d); round(dc, 1); round(i); round(-d, 2)
round(d / 3, 4); sqrt(abs(d)); mod(i, 5); pmod(i, 5); length(s); char_length(s)
character_length(t); octet_length(s); upper(s); lower(s); ucase(t); lcase(t); trim(s); ltrim(s)
rtrim(s); substring(s, 2, 3); substring(s, 0, 2); substring(s, -3, 2); substring(s, -30, 28)
substring(s, 3); substr(s, 2); left(s, 3); right(s, 3); left(s, -1); concat(s, '-', t)
s || t; concat(s, i); concat_ws('/', s, t, 'x'); replace(s, 'a', 'bb'); replace(s, '', 'x')
repeat(t, 2); repeat(t, -1); lpad(s, 8, '*'); rpad(s, 8, 'xy'); lpad(s, 3); lpad(t, -1, 'x')
instr(s, t); instr(s, 'c'); locate('c', s); position('c' IN s); startswith(s, 'a')
endswith(s, 's'); contains(s, t); split(s, ','); split(s, ', '); md5(s); size(a); size(m)
cardinality(a); array_size(a); array_contains(a, 5); array_contains(a, 7); st.x; st.y.z; m['k']
named_struct('a', i, 'b', s); array(i, 1); array(s, t); year(ts); quarter(ts); month(ts); day(ts)
dayofmonth(dt); dayofyear(dt); weekofyear(ts); dayofweek(dt); weekday(dt); hour(ts); minute(ts)
second(ts); extract(year FROM ts); extract(week FROM dt); date_trunc('hour', ts)
date_trunc('WEEK', ts); date_trunc('month', ts); date_trunc('quarter', dt); trunc(dt, 'MM')
trunc(dt, 'year'); trunc(dt, 'week'); date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'); to_date(ts)
date(ts); to_timestamp(dt); to_date('2026-01-05'); to_timestamp('2026-01-05 01:02:03')
date_add(dt, 40); date_sub(dt, 3); dateadd(dt, 1); datediff(dt, DATE '2024-01-01')
date_diff(dt, ts); add_months(dt, 1); add_months(dt, -13); last_day(dt); unix_timestamp(ts)
unix_seconds(ts); unix_millis(ts); unix_micros(ts); timestamp_seconds(l); timestamp_millis(l)
timestamp_micros(l); ts + INTERVAL '1' DAY; ts - INTERVAL 90 MINUTES; ts + INTERVAL 1 MONTH
dt + INTERVAL '1' DAY; dt - INTERVAL 1 YEAR; CAST(i AS bigint); CAST(i AS string)
CAST(dc AS int); CAST(f AS int); CAST(f AS double); CAST(i AS double); CAST(dc AS double)
CAST(dc AS string); CAST(dc AS decimal(12,1)); CAST(i AS decimal(12,2)); CAST(b AS int)
CAST(b AS string); CAST(ts AS string); CAST(dt AS string); CAST(ts AS date); CAST(dt AS timestamp)
CAST(ts AS bigint); CAST(i AS boolean); CAST('12' AS int); CAST(' -5 ' AS bigint)
CAST('1.5e3' AS double); CAST('yes' AS boolean); CAST('3.456' AS decimal(5,2))
CAST(l AS timestamp); CAST(s AS binary); CAST(CAST(t AS binary) AS string)
CAST('2026-02-03T04:05:06+02:00' AS timestamp); CAST('2026-2-3' AS date); TIMESTAMP '2026-01-01'
DATE '2026-01-01'; 1.50; 3000000000; 1e2; 'a''b'; NULL; TRUE; _partition; _offset
(SELECT max(i) FROM t); EXISTS (SELECT 1 FROM t AS u WHERE u.i = main.l) AS found
"""
"""Of a row; with these, every function of the list is called."""

QUERIES = """
SELECT count(*), count(i), count(DISTINCT i), count(DISTINCT i, b), sum(i), sum(l), sum(d), sum(dc),
  sum(DISTINCT i), avg(i), avg(f), mean(i), min(i), max(i), min(s), max(s), min(ts), max(dt),
  max(d), min(dc), max(b), bool_and(b), every(b), bool_or(b), some(b), any(b), count_if(b),
  max_by(s, l), min_by(s, l), stddev(i), std(i), stddev_samp(f), stddev_pop(f), variance(f),
  var_samp(f), var_pop(f), sum(i) FILTER (WHERE b), count(*) FILTER (WHERE i > 0) FROM t
SELECT count(*), sum(i), avg(d), max(s) FROM t WHERE n > 100
SELECT b, count(*) AS c, sum(i) FROM t GROUP BY b ORDER BY b
SELECT i % 2 AS odd, max(n) FROM t GROUP BY odd HAVING max(n) > 1 ORDER BY odd DESC
SELECT i, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1
SELECT window, count(*) FROM t GROUP BY window(ts, '1 day') ORDER BY window.start
SELECT window.start AS begins, b, sum(i) FROM t GROUP BY b, window(ts, '90 minutes') ORDER BY 1, 2
SELECT n FROM t ORDER BY d, n
SELECT n FROM t ORDER BY d DESC, n
SELECT n FROM t ORDER BY s NULLS LAST, n DESC
SELECT n, s FROM t ORDER BY length(s), n LIMIT 3
SELECT n FROM t ORDER BY n LIMIT 2 OFFSET 3
SELECT DISTINCT b FROM t ORDER BY b
SELECT n + 1 AS p, p * 2 AS q FROM t ORDER BY n
SELECT N, T.I, `s` FROM t ORDER BY n
SELECT * FROM t ORDER BY n
SELECT x.*, y.n AS other FROM t AS x JOIN t AS y ON x.i = y.i AND x.n < y.n ORDER BY x.n, other
SELECT x.n, y.l FROM t x LEFT JOIN t y ON x.i = y.l ORDER BY x.n
SELECT x.n, y.n AS o FROM t x FULL OUTER JOIN t y ON x.i = y.l ORDER BY x.n, o
SELECT * FROM (SELECT n, i FROM t) x JOIN (SELECT n, s FROM t) y USING (n) ORDER BY n
SELECT n, x.i, y.s FROM (SELECT n, i FROM t) x FULL JOIN (SELECT n + 3 AS n, s FROM t) y USING (n)
  ORDER BY n
SELECT x.n FROM t x LEFT SEMI JOIN t y ON x.i = y.l ORDER BY x.n
SELECT x.n FROM t x LEFT ANTI JOIN t y ON x.i = y.l ORDER BY x.n
SELECT x.n, y.n AS m FROM t x CROSS JOIN t y WHERE x.n + y.n = 6 ORDER BY x.n
SELECT x.n, y.n AS m FROM t x, t y WHERE x.n = y.n + 1 ORDER BY x.n
WITH p AS (SELECT n, i FROM t WHERE i > 0), q AS (SELECT n AS k FROM p) SELECT * FROM q ORDER BY k
WITH p (u, v) AS (SELECT n, i FROM t) SELECT u, v FROM p ORDER BY u
SELECT n, i FROM t UNION ALL SELECT n, l FROM t ORDER BY n, i
SELECT b FROM t UNION SELECT i > 0 FROM t ORDER BY b
SELECT i FROM t INTERSECT SELECT n FROM t ORDER BY i
SELECT i FROM t EXCEPT SELECT n FROM t ORDER BY i
SELECT i FROM t EXCEPT ALL SELECT n FROM t ORDER BY i
SELECT n, row_number() OVER (ORDER BY d, n), rank() OVER (ORDER BY i), dense_rank() OVER (ORDER BY i
  DESC), ntile(3) OVER (ORDER BY n), lag(n) OVER (ORDER BY n), lag(n, 2, -1) OVER (ORDER BY n),
  lead(s) OVER (PARTITION BY b ORDER BY n), percent_rank() OVER (ORDER BY i), cume_dist() OVER
  (ORDER BY i), first_value(s) OVER (PARTITION BY b ORDER BY n), last_value(n) OVER (PARTITION BY b
  ORDER BY n), sum(i) OVER (PARTITION BY b ORDER BY n), avg(f) OVER (ORDER BY n ROWS BETWEEN 1
  PRECEDING AND CURRENT ROW), count(*) OVER (PARTITION BY b), sum(dc) OVER (ORDER BY n ROWS BETWEEN
  UNBOUNDED PRECEDING AND 1 FOLLOWING), max(n) FILTER (WHERE b) OVER (ORDER BY n) FROM t ORDER BY n
SELECT n, (SELECT count(*) FROM t y WHERE y.i < x.i) AS below FROM t x ORDER BY n
SELECT n FROM t WHERE i IN (SELECT n FROM t) ORDER BY n
SELECT n FROM t WHERE n > 0 AND i NOT IN (SELECT n FROM t WHERE n > 0) ORDER BY n
SELECT n FROM t WHERE n NOT IN (SELECT i FROM t) ORDER BY n
SELECT count(*) FROM (SELECT DISTINCT i, b FROM t)
SELECT sum(i) + 1, avg(i) / 2, count(*) * 2, max(n) - min(n) FROM t
SELECT n, a[0] FROM t WHERE size(a) > 0 ORDER BY n
"""

BAD_JSON = [
    '{"n": "1"}', '{"n": 1.0}', '{"n": 1e2}', '{"n": 3000000000}', '{"n": true}', '{"d": "x"}',
    '{"d": true}', '{"b": 1}', '{"b": "true"}', '{"ts": "soon"}', '{"ts": true}', '{"ts": 1.5}',
    '{"dt": 5}', '{"dt": "2026-02-30"}', '{"ts": "2026-02-30T00:00:00Z"}', '{"a": 1}',
    '{"m": [1]}', '{"st": "x"}', '{"dc": 123456789.5}', "", "  ", "12", '"x"',
    '{"n": 1', '{"n": 1,}', '{n: 1}', "null", '{"a": ["x"]}', '{"sm": 40000}', '{"s": "\t"}',
    '{"n": "x", "n": 1}', '{"st": {"x": "a", "x": 1}}',
    '{"ts": "2026-01-01T25:00:00Z"}', '{"st": {"x": "1"}}', '{"n": 01}',
]  # fmt: skip
GOOD_JSON = [
    "{}", '{"n": null}', '{"n": 1, "more": [1, {"x": 2}]}', ' {"n": 1}', '{"n": 1} and more',
    '{"n": -0}', '{"d": 1}', '{"d": -1.5E-3}', '{"d": "NaN"}', '{"d": "-Infinity"}', '{"d": NaN}',
    '{"s": 12}', '{"s": true}', '{"s": "\\u00e9\\ud83d\\ude00"}', '{"s": ""}',
    '{"ts": "2026-01-01"}', '{"ts": "2026-01-01T10:00"}', '{"ts": "2026-01-01 10:00:00.1234567"}',
    '{"ts": "2026-01-01T10:00:00-02:30"}', '{"ts": "2026-1-2 3:04:05 UTC"}', '{"ts": 12}',
    '{"dt": "2026-1-2"}', '{"dt": "2026"}', '{"dc": 1.005}', '{"dc": 1e2}', '{"a": null}',
    '{"st": {}}', '{"st": {"y": {"z": 5}}}', '{"N": 5}',
    '{"n": 1, "n": 2}', '{"n": 1, "n": null}', '{"n": null, "n": 3}', '{"n": 1, "s": "n", "n": 2}',
    '{"n": 1, "\\u006e": 2}', '{"s": "\\"n\\": 1", "n": 2}',
    '{"st": {"x": 1}, "st": {"y": null}}', '{"st": {"x": 1, "x": 2}}',
    '{"n": 4, "st": {"n": 1, "x": 5}}', '{"q": {"n": 1, "n": 2}, "n": 3}',
    '{"st": {"x": 1, "y": {"z": "a", "z": "b"}}}',
    '{"m": {"a": 1, "b": null}}', '{"l": 9223372036854775807}', '{"f": 0.1}',
]  # fmt: skip
"""Also what only the reader of single records takes."""


@pytest.fixture(scope="module")
def engine(broker: Broker) -> LocalEngine:
    return LocalEngine({"bootstrap.servers": broker.bootstrap_servers})


def _relation(name: str, columns: Mapping[str, str] = COLUMNS) -> Relation:
    made = tuple(Column(each, its_type) for each, its_type in columns.items())
    return Relation(name, RelationKind.STREAM, name, made)


def _fill(broker: Broker, topic: str, values: list[str]) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value.encode(), partition=0)


@pytest.fixture(scope="module")
def catalog(broker: Broker, spark: "SparkSession") -> dict[str, Relation]:
    """The same rows in a topic and in a view of Spark's."""
    texts = json_rows(ROWS)
    _fill(broker, "differential", texts)
    view = read_by_spark(spark, texts)
    view.createOrReplaceTempView("with_places")
    spark.sql(f"SELECT {', '.join(COLUMNS)} FROM with_places").createOrReplaceTempView("t")
    return {"t": _relation("differential")}


def _expressions() -> list[str]:
    return [each.strip() for line in EXPRESSIONS.splitlines() for each in line.split(";") if each]


def _queries() -> list[str]:
    return QUERIES.strip().replace("\n  ", " ").splitlines()


def test_every_function_of_the_list_is_asked() -> None:
    asked = (EXPRESSIONS + QUERIES).lower()
    known = [*FUNCTIONS, *AGGREGATES, *DISTINCT_AGGREGATES, *WINDOW_FUNCTIONS]
    assert [name for name in known if f"{name}(" not in asked] == []


def test_expressions_are_what_they_are_in_spark(
    engine: LocalEngine, catalog: dict[str, Relation], spark: "SparkSession"
) -> None:
    expressions = _expressions()
    explained = {
        each: engine.explain(f"SELECT {each} FROM t AS main", catalog) for each in expressions
    }
    assert [(each, why.reason) for each, why in explained.items() if not why.is_local] == []
    chosen = ", ".join(expressions)
    ours = engine.answer(f"SELECT n, {chosen} FROM t AS main ORDER BY n", catalog).rows
    theirs = spark.sql(f"SELECT n, {chosen} FROM with_places AS main ORDER BY n").toArrow()
    assert not (found := differences(ours, theirs, is_ordered=True)), "\n".join(found)


@pytest.mark.parametrize("query", _queries())
def test_queries_are_what_they_are_in_spark(
    engine: LocalEngine, catalog: dict[str, Relation], spark: "SparkSession", query: str
) -> None:
    ours, theirs = engine.answer(query, catalog).rows, spark.sql(query).toArrow()
    is_ordered = "ORDER BY" in query
    assert not (found := differences(ours, theirs, is_ordered=is_ordered)), "\n".join(found)


def test_json_is_read_as_by_spark(
    engine: LocalEngine, broker: Broker, spark: "SparkSession", topic: str
) -> None:
    texts = GOOD_JSON + BAD_JSON
    ddl = ", ".join(f"{name} {its_type}" for name, its_type in COLUMNS.items())
    rows = spark.createDataFrame(
        [(at, text.encode()) for at, text in enumerate(texts)], "at int, value binary"
    )
    marked = decode_json(rows, {"value": ddl}, "mark").orderBy("at").toArrow()
    is_bad = [each is not None for each in marked.column("reason").to_pylist()]
    assert is_bad == [text in BAD_JSON for text in texts]
    theirs = decode_json(rows, {"value": ddl}, "skip").orderBy("at").selectExpr("value.*").toArrow()
    plain = {name: its for name, its in COLUMNS.items() if name not in ("a", "m", "dc")}
    few = {name: COLUMNS[name] for name in ("n", "s", "st")}
    found = []
    _fill(broker, topic, GOOD_JSON)
    for columns in (COLUMNS, plain, few):
        # What is not asked for is not looked at: the two must agree where both look.
        query = "SELECT * FROM x ORDER BY _offset"
        ours = engine.answer(query, {"x": _relation(topic, columns)}).rows
        for text, own, expected in zip(
            GOOD_JSON, ours.to_pylist(), theirs.to_pylist(), strict=True
        ):
            if not equal(own, {name: expected[name] for name in columns}):
                found.append(f"{text}: {own}, Spark has {expected}")
    for at, text in enumerate(BAD_JSON):
        _fill(broker, f"{topic}-{at}", [text])
        try:
            ours = engine.answer("SELECT * FROM x", {"x": _relation(f"{topic}-{at}")}).rows
            found.append(f"{text}: {ours.to_pylist()}, and Spark refuses it")
        except DecodeError:
            pass
    assert not found, "\n".join(found)
