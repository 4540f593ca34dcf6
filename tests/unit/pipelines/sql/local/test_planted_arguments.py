"""Whatever sqlglot can put into a statement's tree is answered for, or goes to Spark.

Every argument that the classes of answered statements have is planted into one of them: the
statement must be refused then, or become another query. `EQUAL` has what may change nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

import pytest
from sqlglot import exp

from moldau.pipelines.sql.local import nodes
from moldau.pipelines.sql.local.nodes import MEANINGLESS, is_said
from moldau.pipelines.sql.local.parsing import parse
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.selects import DuckQuery
from tests.unit.pipelines.sql.local.translating import translate_tree

Pair = tuple[type[exp.Expr], str]

ANSWERED: Final = """
SELECT n, i + 1, -i, i * 2 - l, i / 2, i div 2, i % 3, s || t, 'x', 1.5, 1L, -5, NULL, TRUE FROM t
SELECT b AND NOT b OR (i > 1), i = l, i <=> l, i != 3, i <= 3, i >= 3, i < 3 FROM t
SELECT i IS NULL, i IS NOT NULL, b IS TRUE, i IS DISTINCT FROM l, i BETWEEN 1 AND 2 FROM t
SELECT i IN (1, 2), i NOT IN (1), s LIKE 'a%', s NOT LIKE 'a%' FROM t
SELECT CASE i WHEN 1 THEN 2 ELSE 3 END, CASE WHEN b THEN 1 END, if(b, 1, 2) FROM t
SELECT CAST(i AS bigint), i::string, CAST(dc AS decimal(12, 1)), DATE '2026-01-01' FROM t
SELECT upper(s), count(*), count(DISTINCT i, l), sum(i) FILTER (WHERE b), any(b) FROM t
SELECT substring(s FROM 2 FOR 3), trim(LEADING FROM s), position('c' IN s) FROM t
SELECT extract(year FROM ts), current_date, current_timestamp AS now, ts + INTERVAL 1 DAY FROM t
SELECT st.y.z, named_struct('a', i).a, a[0], m['k'] FROM t
SELECT sum(i) OVER (PARTITION BY b ORDER BY n DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT *, x.* FROM t AS x WHERE x.i > 3 ORDER BY n NULLS LAST, s LIMIT 3 OFFSET 1
SELECT DISTINCT b AS q FROM t
SELECT 1 AS one
SELECT b, max(n) AS top FROM t GROUP BY b, i % 2 HAVING max(n) > 1
SELECT window.start, count(*) FROM t GROUP BY window(ts, '1 minute')
SELECT x.n, y.n AS o FROM t x JOIN t y ON x.i = y.i LEFT JOIN t z ON y.i = z.i CROSS JOIN t w
SELECT n FROM (SELECT n FROM t) AS x JOIN (SELECT i FROM t) AS y (k) ON n = k
SELECT n, x.i FROM t AS x FULL OUTER JOIN t AS y USING (n)
WITH p (u) AS (SELECT n FROM t) SELECT u FROM p
SELECT n FROM t UNION ALL SELECT i FROM t ORDER BY n LIMIT 3
SELECT n FROM t INTERSECT SELECT i FROM t EXCEPT (SELECT i FROM t LIMIT 3)
(SELECT n FROM t) ORDER BY n LIMIT 3
SELECT n FROM t WHERE i IN (SELECT n FROM t) AND EXISTS (SELECT 1 FROM t)
SELECT (SELECT max(i) FROM t), n FROM t VERSION AS OF '{}' AS x
"""
"""Statements with every kind of node that is known here."""

REAL: Final = """
SELECT * FROM (SELECT s, n FROM t) PIVOT (count(n) FOR s IN ('k0', 'k1'))
SELECT * FROM (SELECT i, n FROM t) UNPIVOT (v FOR k IN (i, n))
SELECT * FROM t PIVOT (count(n) FOR s IN ('k0', 'k1'))
SELECT * FROM t TABLESAMPLE (5 ROWS)
SELECT * FROM (SELECT n FROM t) TABLESAMPLE (0 PERCENT)
SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 4)
SELECT * FROM t USING SAMPLE 10
SELECT * FROM t LATERAL VIEW OUTER explode(a) x AS y
SELECT * FROM t, LATERAL (SELECT 1)
SELECT * FROM t JOIN LATERAL (SELECT 1)
SELECT /*+ BROADCAST(t) */ n FROM t
SELECT n FROM t QUALIFY row_number() OVER (ORDER BY n) = 1
SELECT n FROM t CLUSTER BY n
SELECT n FROM t DISTRIBUTE BY n SORT BY n
SELECT sum(n) OVER w FROM t WINDOW w AS (ORDER BY n)
SELECT first_value(n) IGNORE NULLS OVER (ORDER BY n) FROM t
SELECT first_value(n) RESPECT NULLS OVER (ORDER BY n) FROM t
SELECT first_value(n IGNORE NULLS) OVER (ORDER BY n) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t
SELECT collect_list(n ORDER BY i) FROM t
SELECT b, i FROM t GROUP BY ROLLUP (b, i)
SELECT b, i FROM t GROUP BY CUBE (b, i)
SELECT b, i FROM t GROUP BY b, i WITH ROLLUP
SELECT b, i FROM t GROUP BY b, i WITH CUBE
SELECT b, i FROM t GROUP BY GROUPING SETS ((b), (i))
SELECT b, i FROM t GROUP BY b, i GROUPING SETS ((b), (i))
SELECT b, i FROM t GROUP BY ALL
SELECT b FROM t GROUP BY DISTINCT b
SELECT n FROM t ORDER BY ALL
SELECT n FROM t LIMIT ALL
SELECT n FROM t LIMIT n + 1
SELECT n FROM t LIMIT 5 PERCENT
SELECT k FROM VALUES (1), (2) AS v (k)
SELECT * FROM range(5)
SELECT * EXCEPT (n) FROM t
SELECT n FROM t AS x (m)
SELECT n FROM t NATURAL JOIN t AS u
SELECT n FROM t ASOF JOIN t AS u
SELECT x.n FROM t x JOIN t y JOIN t z ON y.n = z.n ON x.n = y.n
SELECT * FROM (t JOIN t u ON t.n = u.n)
SELECT n FROM t UNION ALL BY NAME SELECT i AS n FROM t
WITH RECURSIVE p AS (SELECT n FROM t) SELECT * FROM p
WITH p AS MATERIALIZED (SELECT n FROM t) SELECT * FROM p
SELECT s COLLATE UTF8_LCASE = 'A' FROM t
SELECT CAST(s AS string COLLATE UTF8_LCASE) FROM t
SELECT try_cast(s AS int) FROM t
SELECT s LIKE 'a/%' ESCAPE '/' FROM t
SELECT s LIKE ANY ('a', 'b') FROM t
SELECT s ILIKE 'a' FROM t
SELECT s RLIKE 'a' FROM t
SELECT i BETWEEN SYMMETRIC 3 AND 1 FROM t
SELECT trim(LEADING 'x' FROM s) FROM t
SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM t
SELECT sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT DISTINCT ON (b) n FROM t
SELECT AS STRUCT n FROM t
SELECT n FROM t FOR UPDATE
SELECT n FROM t |> WHERE n > 1
SELECT i AS n FROM t |> WHERE n > 1
SELECT s || i + 1 FROM t
SELECT b IS NULL = b FROM t
SELECT b = NOT b FROM t
SELECT b IN (true) IN (false) FROM t
SELECT +i FROM t
SELECT timestampdiff(DAY, ts, ts) FROM t
SELECT timestampadd(DAY, 1, ts) FROM t
SELECT dateadd(DAY, 1, dt) FROM t
SELECT date_add(MONTH, 1, dt) FROM t
SELECT datediff(DAY, dt, ts) FROM t
SELECT date_diff(HOUR, dt, ts) FROM t
SELECT unknown_function(DAY, dt) FROM t
SELECT f.g(n) FROM t
SELECT transform(a, x -> x + 1) FROM t
SELECT make_interval(years => 1) FROM t
SELECT session_user FROM t
SELECT grouping__id FROM t
SELECT user FROM t
SELECT current_time FROM t
SELECT :parameter FROM t
SELECT n AS (x, y) FROM t
SELECT 'a' 'b' FROM t
SELECT X'1F' FROM t
SELECT extract(CENTURY FROM ts) FROM t
SELECT ts + INTERVAL '1-2' YEAR TO MONTH FROM t
SELECT ts + INTERVAL 1 DAY 2 HOURS FROM t
FROM t INSERT INTO u SELECT n
TABLE t
"""
"""Statements of Spark's, or of others that sqlglot reads, whose answer is not known here."""

EQUAL: Final[dict[tuple[type[exp.Expr], str, Any], str]] = {
    (exp.Join, "kind", "CROSS"): "with a condition, it is any other join",
    (exp.Join, "kind", "OUTER"): "LEFT JOIN is LEFT OUTER JOIN",
    (exp.Literal, "is_string", False): "INTERVAL 1 DAY is INTERVAL '1' DAY",
}
"""What may be planted without effect, and why."""

_PLAIN: Final = (True, "PLANTED", exp.column("n"), [exp.column("n")])
_SEEN_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for arguments: a node of a kind in one role, in one statement."""

    kind: type[exp.Expr]
    role: str
    statement: str
    at: int
    """Which node of the statement it is, as they are walked."""


def _lines(texts: str) -> list[str]:
    return texts.strip().splitlines()


@cache
def _answer(statement: str) -> DuckQuery:
    return translate_tree(parse(statement))


@cache
def _spots() -> list[Spot]:
    """Return one spot for each kind of node, role, and choice of arguments that it has."""
    spots = {}
    for statement in _lines(ANSWERED):
        for at, node in enumerate(parse(statement).walk()):
            role = f"{type(node.parent).__name__}.{node.arg_key}"
            said = tuple(name for name, value in node.args.items() if is_said(value))
            spots.setdefault((type(node), role, said), Spot(type(node), role, statement, at))
    return list(spots.values())


@cache
def _seen() -> Mapping[Pair, list[Any]]:
    """Return the values that the parser gives to arguments of all kinds."""
    seen: dict[Pair, list[Any]] = {}
    for statement in _lines(ANSWERED + REAL):
        try:
            tree = parse(statement)
        except GoesToSpark:
            continue
        for node in tree.walk():
            for name, value in node.args.items():
                known = seen.setdefault((type(node), name), [])
                if is_said(value) and value not in known and len(known) < _SEEN_MAX:
                    known.append(value)
    return seen


def _names(kind: type[exp.Expr]) -> list[str]:
    return sorted({*kind.arg_types, *(name for each, name in _seen() if each is kind)})


def _overlooked(only: Pair | None = None) -> set[Pair]:
    """Return the arguments that are planted somewhere and not noticed."""
    found = set()
    for spot in _spots():
        for name in _names(spot.kind):
            pair = spot.kind, name
            if pair in found or (only is not None and pair != only):
                continue
            values = [*_seen().get(pair, ()), *_PLAIN]
            if any(_is_overlooked(spot, name, value) for value in values):
                found.add(pair)
    return found


def _is_overlooked(spot: Spot, name: str, value: Any) -> bool:
    tree = _tree(spot.statement)
    node = next(islice(tree.walk(), spot.at, None))
    there = node.args.get(name)
    is_node = isinstance(value, exp.Expr | list)
    if there == value or (is_node and there) or (not is_node and (spot.kind, name, value) in EQUAL):
        return False
    node.args[name] = value
    try:
        return translate_tree(tree) == _answer(spot.statement)
    except (GoesToSpark, QueryError):
        return False
    finally:
        node.args[name] = there


@cache
def _tree(statement: str) -> exp.Expr:
    return parse(statement)


@pytest.mark.parametrize("statement", _lines(ANSWERED))
def test_it_is_answered(statement: str) -> None:
    assert _answer(statement).text


@pytest.mark.parametrize("statement", _lines(REAL))
def test_it_goes_to_spark(statement: str) -> None:
    with pytest.raises(GoesToSpark):
        translate_tree(parse(statement))


def test_nothing_that_is_planted_is_overlooked() -> None:
    known = {(spot.kind, name) for spot in _spots() for name in spot.kind.arg_types}
    assert _overlooked() == set(MEANINGLESS) & known


def _taken(monkeypatch: pytest.MonkeyPatch) -> set[Pair]:
    """Return the arguments that translators look at themselves."""
    taken, take = set(), nodes.ParsedNode._take

    def noting(self: nodes.ParsedNode, name: str) -> Any:
        taken.add((self.kind, name))
        return take(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(nodes.ParsedNode, "_take", noting)
        for statement in _lines(ANSWERED):
            translate_tree(parse(statement))
    return taken


@pytest.mark.long
def test_without_its_check_each_argument_would_be_overlooked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nodes.ParsedNode, "check_own", lambda _: None)
        unchecked = _overlooked()
    guarded = unchecked - set(MEANINGLESS) - _taken(monkeypatch)
    known = {(spot.kind, name) for spot in _spots() for name in spot.kind.arg_types}
    assert known - _taken(monkeypatch) - set(MEANINGLESS) == guarded & known
    for pair in guarded:
        with monkeypatch.context() as patch:
            patch.setattr(nodes, "MEANINGLESS", {**MEANINGLESS, pair: "its check is removed"})
            assert pair in _overlooked(pair), f"{pair[0].__name__}.{pair[1]}"
