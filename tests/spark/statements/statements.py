"""Whole statements: expressions, aggregates, windows and queries in turn, of every function."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle
from random import Random
from typing import Final

from tests.spark.statements.expressions import ExpressionMaker
from tests.spark.statements.signatures import AGGREGATES, PLAIN, SIGNATURES, WINDOWED, Signature


class Shape(StrEnum):
    """What a statement looks like; those of one shape but QUERY can be asked together."""

    ROWS = "rows"
    """`SELECT item FROM t`, a value for each row."""
    GROUP = "group"
    """`SELECT item FROM t`, a value for all rows."""
    WINDOW = "window"
    """`SELECT item FROM t`, a value for each row that others have a part in."""
    QUERY = "query"
    """Anything."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and how its result is compared."""

    shape: Shape
    text: str
    item: str = ""
    """Of what can be asked together with others."""
    is_ordered: bool = False
    """Whether ORDER BY says where each row is."""


FOREIGN: Final = (
    "SELECT * FROM (SELECT b, n FROM t) PIVOT (count(n) FOR b IN (true, false))",
    "SELECT * FROM (SELECT i, n FROM t) UNPIVOT (v FOR k IN (i, n))",
    "SELECT count(*) FROM (SELECT n FROM t) TABLESAMPLE (0 PERCENT)",
    "SELECT count(*) FROM t TABLESAMPLE (100 PERCENT)",
    "SELECT n, y FROM t LATERAL VIEW explode(a) x AS y",
    "SELECT n, y FROM t, LATERAL (SELECT i + 1 AS y)",
    "SELECT /*+ COALESCE(1) */ {item} FROM t",
    "SELECT {item} FROM t CLUSTER BY n",
    "SELECT {item} FROM t DISTRIBUTE BY n SORT BY n",
    "SELECT sum(i) OVER w FROM t WINDOW w AS (ORDER BY n)",
    "SELECT first_value(i) IGNORE NULLS OVER (ORDER BY n) FROM t",
    "SELECT lag(i) IGNORE NULLS OVER (ORDER BY n) FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM t",
    "SELECT b, sum(i) FROM t GROUP BY ROLLUP (b)",
    "SELECT b, i, sum(l) FROM t GROUP BY CUBE (b, i)",
    "SELECT b, sum(i) FROM t GROUP BY b WITH ROLLUP",
    "SELECT b, i, sum(l) FROM t GROUP BY b, i GROUPING SETS ((b), (i))",
    "SELECT b, count(*) FROM t GROUP BY ALL",
    "SELECT n, {item} FROM t ORDER BY ALL",
    "SELECT {item} FROM t LIMIT ALL",
    "SELECT k FROM VALUES (1), (2) AS v (k)",
    "SELECT id FROM range(3)",
    "SELECT * EXCEPT (m, st, a) FROM t",
    "SELECT k FROM (SELECT n FROM t) AS x (k)",
    "SELECT * FROM (SELECT n FROM t) NATURAL JOIN (SELECT n, i FROM t)",
    "SELECT s COLLATE UTF8_LCASE = 'PRAHA' FROM t",
    "SELECT CAST(s AS string COLLATE UTF8_LCASE) = 'A' FROM t",
    "SELECT try_cast(s AS int) FROM t",
    "SELECT s LIKE '%/%%' ESCAPE '/' FROM t",
    "SELECT s LIKE ANY ('a%', '%d%') FROM t",
    "SELECT s ILIKE '%E%' FROM t",
    "SELECT s RLIKE '[a-z]+' FROM t",
    "SELECT trim(LEADING ' ' FROM s) FROM t",
    "SELECT i AS n FROM t |> WHERE n > 3",
    "SELECT s || n + 1 FROM t WHERE s = '12'",
    "SELECT b = b IN (true) FROM t",
    "SELECT b = b < b FROM t",
    "SELECT i & 3, i | 1, i ^ 2, ~ i, i << 1 FROM t",
    "SELECT timestampdiff(DAY, dt, ts) FROM t",
    "SELECT timestampadd(HOUR, 2, ts) FROM t",
    "SELECT dateadd(MONTH, 1, dt) FROM t",
    "SELECT date_add(DAY, 1, dt) FROM t",
    "SELECT datediff(WEEK, dt, ts), date_diff(MINUTE, dt, ts) FROM t",
    "SELECT transform(a, x -> x + 1), exists(a, x -> x > 1) FROM t",
    "SELECT current_user IS NULL, user IS NULL, current_time IS NULL FROM t",
    "SELECT 'a' 'b', X'1F', r'\\n' FROM t",
    "SELECT ts + INTERVAL '1-2' YEAR TO MONTH, ts + INTERVAL 1 DAY 2 HOURS FROM t",
    "SELECT count(*) FROM t, t",
    "SELECT struct(n, i AS k).k FROM t",
    "SELECT (n, i) IN ((1, -7)) FROM t",
    "SELECT sum(i) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "TABLE t",
    "FROM t SELECT n",
    "SELECT n FROM t MINUS SELECT i FROM t",
)
"""Clauses and words of Spark's grammar that are hardly known without it."""
_ORDERS: Final = ("", " DESC", " NULLS LAST", " ASC NULLS FIRST", " DESC NULLS FIRST")
_FRAMES: Final = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS 2 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
_JOINS: Final = (
    "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL OUTER JOIN",
)  # fmt: skip


class StatementMaker:
    """Makes statements without an end, the same ones for a seed."""

    def __init__(self, seed: int, others: Sequence[str] = ()) -> None:
        self._random = Random(seed)
        self._made = ExpressionMaker(self._random)
        self._others = others
        """Functions that Spark has, and that are not answered without it."""

    def statements(self) -> Iterator[Statement]:
        """Yield statements: each function is called with columns at first, and then with more."""
        functions = self._in_turn(SIGNATURES)
        aggregates = self._in_turn(AGGREGATES)
        windows = self._in_turn({**WINDOWED, **AGGREGATES})
        kinds = (
            ("rows",) * 13 + ("group",) * 2 + ("window",) * 2 + ("query",) * 2 + ("foreign",) * 3
        )
        for name, (signature, *_) in SIGNATURES.items():
            yield self._rows(self._made.plain_call(name, signature))
        for name, (signature, *_) in AGGREGATES.items():
            yield self._group(self._made.plain_call(name, signature))
        for name, (signature, *_) in WINDOWED.items():
            yield self._over(self._made.plain_call(name, signature), "ORDER BY n")
        for kind in cycle(kinds):
            match kind:
                case "rows":
                    yield self._rows(self._expression(next(functions)))
                case "group":
                    yield self._group(self._aggregated(next(aggregates)))
                case "window":
                    yield self._window(next(windows), self._random.randrange(2))
                case "query":
                    yield self._query()
                case _:
                    yield self._foreign()

    def _in_turn(self, names: dict[str, tuple[Signature, ...]]) -> Iterator[str]:
        ordered = sorted(names)
        while True:
            self._random.shuffle(ordered)
            yield from ordered

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    # One row's value.

    def _rows(self, item: str) -> Statement:
        return Statement(Shape.ROWS, f"SELECT {item} FROM t", item)

    def _expression(self, focus: str) -> str:
        depth = self._random.choice((0, 0, 1, 1, 2, 3))
        match self._random.randrange(7):
            case 0:
                return self._made.of(self._pick(*PLAIN), depth + 1)
            case 1:
                parts = self._made.extracted(depth), self._made.unparenthesized()
                return self._pick(*parts)
            case 2 | 3:
                # Inside of something else.
                return self._around(self._made.call(focus, depth), SIGNATURES[focus][0][0])
            case _:
                return self._made.call(focus, depth)

    def _around(self, inner: str, its_type: str) -> str:
        other = self._made.leaf(its_type)
        return self._pick(
            f"{inner} IS NOT NULL", f"coalesce({inner}, {other})", f"{inner} = {other}",
            f"CASE WHEN {inner} IS NULL THEN 1 ELSE 0 END", f"({inner})",
        )  # fmt: skip

    # The value of many rows.

    def _group(self, item: str) -> Statement:
        return Statement(Shape.GROUP, f"SELECT {item} FROM t", item)

    def _aggregate(self, name: str, depth: int) -> str:
        args = []
        for each in self._random.choice(AGGREGATES[name])[1:]:
            prefix, _, its_type = each.rpartition(" ")
            made = "*" if its_type == "*" else self._made.argument(its_type, depth)
            args.append(f"{prefix} {made}".strip())
        return f"{self._pick(name, name, name.upper())}({', '.join(args)})"

    def _filtered(self, name: str, depth: int) -> str:
        made = self._aggregate(name, depth)
        if self._random.random() < 0.25:
            made += f" FILTER (WHERE {self._made.of('boolean', 1)})"
        return made

    def _aggregated(self, name: str) -> str:
        made = self._filtered(name, self._random.randrange(2))
        match self._random.randrange(6):
            case 0:
                return f"{made} IS NOT NULL"
            case 1:
                return f"coalesce({made}, NULL)"
            case 2:
                return f"{self._aggregate('max', 0)} = {made} OR {made} IS NULL"
            case _:
                return made

    def _window(self, name: str, depth: int) -> Statement:
        frame = ""
        if name in AGGREGATES:
            function = self._filtered(name, depth)
            # Without an end, what is distinct is not known.
            is_distinct = "DISTINCT" in function
            order = [] if is_distinct or self._random.random() < 0.3 else self._order()
        else:
            _, *takes = self._random.choice(WINDOWED[name])
            args = [self._made.argument(each, depth) for each in takes]
            function, order = f"{name}({', '.join(args)})", self._order()
        frames = name in AGGREGATES or name in ("first_value", "last_value")
        if order and frames and self._random.random() < 0.5:
            frame = self._pick(*_FRAMES)
        partition = f"PARTITION BY {self._pick('b', 'i % 2', 'b, i', 'n > 3')}"
        clauses = [
            *([partition] if self._random.random() < 0.6 else []),
            *([f"ORDER BY {', '.join(order)}"] if order else []),
            *([frame] if frame else []),
        ]
        return self._over(function, " ".join(clauses))

    def _over(self, function: str, clauses: str) -> Statement:
        item = f"{function} OVER ({clauses})"
        return Statement(Shape.WINDOW, f"SELECT {item} FROM t ORDER BY n", item, is_ordered=True)

    def _order(self) -> list[str]:
        by = self._made.leaf(self._pick(*PLAIN))
        # The last one says which of two equal rows is first.
        return [f"{by}{self._pick(*_ORDERS)}", f"n{self._pick(*_ORDERS)}"]

    # Queries.

    def _query(self) -> Statement:
        makers = (
            self._filtering, self._grouping, self._joining, self._combining, self._nesting,
            self._with, self._distinct, self._correlated, self._windows, self._limited,
            self._naming, self._ranking, self._having,
        )  # fmt: skip
        return self._random.choice(makers)()

    def _condition(self) -> str:
        # Where nothing is left, nothing is compared.
        return f"({self._made.of('boolean', 2)}) OR n < {self._random.randrange(1, 5)}"

    def _items(self, count: int, depth: int = 1) -> list[str]:
        items = []
        for at in range(count):
            made = self._made.of(self._pick(*PLAIN), depth)
            items.append(f"{made} AS x{at}" if self._random.random() < 0.4 else made)
        return items

    def _filtering(self) -> Statement:
        items = ", ".join(self._items(self._random.randrange(1, 4)))
        text = f"SELECT n, {items} FROM t WHERE {self._condition()}"
        return Statement(Shape.QUERY, f"{text} ORDER BY n", is_ordered=True)

    def _limited(self) -> Statement:
        by = ", ".join(self._order())
        offset = f" OFFSET {self._random.randrange(3)}" if self._random.random() < 0.5 else ""
        text = f"SELECT n, {self._items(1, 1)[0]} FROM t ORDER BY {by} LIMIT 3{offset}"
        return Statement(Shape.QUERY, text, is_ordered=True)

    def _grouping(self) -> Statement:
        aggregates = [
            self._aggregate(self._pick(*AGGREGATES), 0) for _ in range(self._random.randrange(1, 4))
        ]
        having = ""
        if self._random.random() < 0.3:
            having = f" HAVING count(*) > {self._random.randrange(2)}"
        if self._random.random() < 0.3:
            size = self._pick("1 day", "90 minutes", "10 seconds", "2 weeks", "1 hour 30 minutes")
            shown = self._pick("window", "window.start", "window.end", "window.start AS begins")
            text = f"SELECT {shown}, {', '.join(aggregates)} FROM t GROUP BY window(ts, '{size}')"
            return Statement(Shape.QUERY, text + having)
        key = self._made.of(self._pick("int", "boolean", "string", "date"), 1)
        match self._random.randrange(3):
            case 0:
                text = f"SELECT {key} AS k, {', '.join(aggregates)} FROM t GROUP BY k"
            case 1:
                text = f"SELECT {key}, {', '.join(aggregates)} FROM t GROUP BY 1"
            case _:
                text = f"SELECT {key}, {', '.join(aggregates)} FROM t GROUP BY {key}"
        return Statement(Shape.QUERY, text + having)

    def _joining(self) -> Statement:
        kind = self._pick(*_JOINS)
        on = self._pick("x.i = y.i", "x.n = y.n", "x.i = y.n", "x.b = y.b AND x.n <= y.n",
                        "x.l = y.i OR x.n = y.n", "x.dt = y.dt")  # fmt: skip
        match self._random.randrange(5):
            case 0:
                text = f"SELECT x.n, y.s, x.i + y.n FROM t x {kind} t y ON {on}"
            case 1:
                text = (
                    f"SELECT * FROM (SELECT n, i FROM t) x {kind} (SELECT n, s FROM t) y USING (n)"
                )
            case 2:
                semi = self._pick("LEFT SEMI JOIN", "LEFT ANTI JOIN", "SEMI JOIN", "ANTI JOIN")
                text = f"SELECT x.n, x.s FROM t x {semi} t y ON x.i = y.n"
            case 3:
                text = "SELECT x.n, y.n AS m FROM t x CROSS JOIN t y WHERE x.n + y.n = 6"
            case _:
                text = f"SELECT x.*, y.i AS j FROM (SELECT n, s, i FROM t) x, t y WHERE {on}"
        return Statement(Shape.QUERY, text)

    def _combining(self) -> Statement:
        word = self._pick("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL",
                          "INTERSECT ALL", "UNION DISTINCT", "MINUS")  # fmt: skip
        its_type = self._pick("int", "string", "boolean", "date")
        sides = [self._made.of(its_type, 1) for _ in range(3)]
        text = f"SELECT {sides[0]}, n FROM t {word} SELECT {sides[1]}, n FROM t"
        if self._random.random() < 0.3:
            text += f" {self._pick('INTERSECT', 'UNION ALL', 'EXCEPT')} SELECT {sides[2]}, n FROM t"
        return Statement(Shape.QUERY, text + self._pick("", " ORDER BY n", " ORDER BY 2, 1"))

    def _nesting(self) -> Statement:
        inner = ", ".join(f"{self._made.of(self._pick(*PLAIN), 1)} AS y{at}" for at in range(2))
        text = f"SELECT q.y0, y1, n + 1 FROM (SELECT n, {inner} FROM t) AS q"
        return Statement(Shape.QUERY, f"{text} WHERE n > 0")

    def _with(self) -> Statement:
        inner = self._made.of(self._pick(*PLAIN), 1)
        names = self._pick("", " (u, v)")
        shown = "u, v, u + 1" if names else "*"
        text = f"WITH p{names} AS (SELECT n, {inner} FROM t WHERE {self._condition()})"
        return Statement(Shape.QUERY, f"{text}, q AS (SELECT * FROM p) SELECT {shown} FROM q")

    def _distinct(self) -> Statement:
        return Statement(Shape.QUERY, f"SELECT DISTINCT {', '.join(self._items(2))} FROM t")

    def _correlated(self) -> Statement:
        match self._random.randrange(5):
            case 0:
                item = f"(SELECT {self._aggregate('max', 0)} FROM t)"
                return Statement(Shape.QUERY, f"SELECT n, {item} FROM t ORDER BY n")
            case 1:
                text = "SELECT n, (SELECT count(*) FROM t y WHERE y.i < x.i) AS below FROM t x"
            case 2:
                tested = f"{self._pick('i', 'n')} {self._pick('', 'NOT ')}IN"
                text = f"SELECT n FROM t WHERE {tested} (SELECT n FROM t WHERE n > 2)"
            case 3:
                no = self._pick("", "NOT ")
                text = f"SELECT n FROM t x WHERE {no}EXISTS (SELECT 1 FROM t y WHERE y.n = x.i)"
            case _:
                text = "SELECT n FROM t WHERE l > (SELECT min(l) FROM t WHERE b)"
        return Statement(Shape.QUERY, text)

    def _windows(self) -> Statement:
        inner = self._window(self._pick(*WINDOWED), 0).item
        text = f"SELECT n, w FROM (SELECT n, {inner} AS w FROM t) WHERE w IS NOT NULL OR n > 2"
        return Statement(Shape.QUERY, text)

    def _naming(self) -> Statement:
        """Aliases that others use, that hide columns, that are there twice or need quotes."""
        one, other = (self._made.of("int", 1) for _ in range(2))
        text = self._pick(
            f"SELECT {one} AS p, p + 1, -p AS q, q * 2 FROM t",
            f"SELECT {one} AS p, p, CAST(p AS string), p IS NULL FROM t",
            f"SELECT {one} AS `a b`, `a b` + 1 FROM t ORDER BY `a b`",
            f"SELECT n, n, {one} AS n FROM t",
            f"SELECT {one} AS i, i, -i FROM t ORDER BY i",
            f"SELECT {one} AS i FROM t ORDER BY n",
            f"SELECT x.p, p + {other} FROM (SELECT {one} AS p, t.* FROM t) AS x, (SELECT 1) AS t",
            f"SELECT T.N, t.i, `T`.`s` FROM t -- {other}\nWHERE n > 0 /* {one} */",
            f"SELECT st.x, st.y.z, st.y, m['k'], t.st.x + {one} FROM t",
            "SELECT q.st.y.z, q.st.x + 1 FROM (SELECT st FROM t) q",
            "SELECT st AS p, p.x, p.y.z, p.x + 1 FROM t",
            f"SELECT i, count(*) AS i FROM t GROUP BY i HAVING i > {one}",
        )
        return Statement(Shape.QUERY, text)

    def _ranking(self) -> Statement:
        aggregate = self._aggregate(self._pick("sum", "count", "max", "avg"), 0)
        key = self._pick("b", "i % 3", "n > 3", "dt", "s", "st.x")
        text = self._pick(
            f"SELECT {key} AS k, {aggregate} AS v FROM t GROUP BY {key} ORDER BY v, k",
            f"SELECT {key}, {aggregate} FROM t GROUP BY {key} ORDER BY {aggregate}, {key}",
            f"SELECT {key} FROM t GROUP BY {key} ORDER BY count(*) DESC, {key}",
            f"SELECT {aggregate} FROM t GROUP BY {key} ORDER BY {key}",
            f"SELECT {key}, {aggregate} FROM t GROUP BY {key} ORDER BY 2 DESC, 1 LIMIT 2",
            f"SELECT {key} AS k, {aggregate} FROM t GROUP BY k ORDER BY CAST(k AS string), k",
        )
        return Statement(Shape.QUERY, text, is_ordered=True)

    def _having(self) -> Statement:
        aggregate = self._aggregate(self._pick(*AGGREGATES), 0)
        condition = self._made.of("boolean", 1)
        text = self._pick(
            f"SELECT {aggregate} FROM t HAVING count(*) > 0",
            f"SELECT b, {aggregate} AS v FROM t GROUP BY b HAVING v IS NOT NULL",
            f"SELECT b, {aggregate} FROM t WHERE {condition} OR n > 2 GROUP BY b HAVING max(n) > 3",
            f"SELECT i % 2, b, {aggregate} FROM t GROUP BY b, i % 2 HAVING b OR count(*) > 0",
            f"SELECT {aggregate} FROM t WHERE n > 100",
            f"SELECT (SELECT {aggregate} FROM t), (SELECT max(n) FROM t) + 1 FROM t WHERE n = 1",
            f"SELECT n FROM t x WHERE EXISTS (SELECT {aggregate} FROM t y WHERE y.n = x.n)",
        )
        return Statement(Shape.QUERY, text)

    def _foreign(self) -> Statement:
        if self._others and self._random.random() < 0.6:
            types = [self._pick(*PLAIN) for _ in range(self._random.randrange(4))]
            args = ", ".join(self._made.leaf(each) for each in types)
            return Statement(
                Shape.QUERY, f"SELECT {self._random.choice(self._others)}({args}) FROM t"
            )
        item = self._made.of(self._pick(*PLAIN), 1)
        return Statement(Shape.QUERY, self._pick(*FOREIGN).format(item=item))
