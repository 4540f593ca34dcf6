"""Expressions from Spark's SQL to DuckDB's, each with its type; what is unknown goes to Spark."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlglot import exp

from moldau.pipelines.sql.local import operators
from moldau.pipelines.sql.local.aggregates import (
    AGGREGATES,
    DISTINCT_AGGREGATES,
    WINDOW_FUNCTIONS,
)
from moldau.pipelines.sql.local.casts import cast, guard, plain_cast
from moldau.pipelines.sql.local.functions import FUNCTIONS, choose, substring
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import MARK, Scope, Sql, field_of
from moldau.pipelines.sql.local.signatures import Mismatch, fit, together
from moldau.pipelines.sql.local.time_functions import PARTS, window_of
from moldau.pipelines.sql.local.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    SparkType,
    from_sqlglot,
    text,
)
from moldau.pipelines.sql.local.window_specs import over_clause

Subquery = Callable[[exp.Expression, Scope], tuple[str, Sequence[SparkType]]]
"""Translates a query inside an expression: its text, and the types of its columns."""

_INT_MAX: Final = (1 << 31) - 1
_CLAUSES: Final = (exp.Filter, exp.Window)
_ARGUMENTS: Final = {"this", "expression", "expressions"}
_MORE_ARGUMENTS: Final[dict[type[exp.Expression], set[str]]] = {
    exp.Column: {"table", "db", "catalog"},
    exp.Literal: {"is_string"},
    exp.Between: {"low", "high"},
    exp.In: {"query"},
    exp.Case: {"ifs", "default"},
    exp.If: {"true", "false"},
    exp.Cast: {"to", "safe"},
    exp.TryCast: {"to", "safe"},
    # Both are said of the dialect, and not in the query.
    exp.Div: {"typed", "safe"},
    exp.DPipe: {"safe"},
    exp.Substring: {"start", "length"},
    exp.Trim: {"position"},
    exp.StrPosition: {"substr"},
    exp.Window: {"partition_by", "order", "spec", "over", "alias"},
}
"""What is known to be in a node; whatever else it says, it says to Spark."""


class Expressions:
    """Translates expressions of one query."""

    def __init__(self, subquery: Subquery, now: datetime) -> None:
        self._subquery = subquery
        self._now = now
        self._nodes: dict[type[exp.Expression], Callable[[Any, Scope], Sql]] = {
            exp.Column: self._column,
            exp.Literal: lambda node, _: _literal(node),
            exp.Boolean: lambda node, _: Sql("true" if node.this else "false", BOOLEAN),
            exp.Null: lambda _node, _: Sql("NULL", NULL),
            exp.Paren: lambda node, scope: self.translate(node.this, scope),
            exp.Neg: self._negative,
            exp.Not: self._not,
            exp.And: self._logical,
            exp.Or: self._logical,
            exp.Is: self._is,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Exists: self._exists,
            exp.Subquery: self._scalar,
            exp.Like: self._like,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.DPipe: lambda node, scope: self._call(
                "concat", [node.this, node.expression], scope
            ),
            exp.Concat: lambda node, scope: self._call("concat", node.expressions, scope),
            exp.Substring: self._substring,
            exp.Trim: self._trim,
            exp.StrPosition: self._position,
            exp.Extract: self._extract,
            exp.CurrentDate: lambda _node, _: self._today(),
            exp.CurrentTimestamp: lambda _node, _: self._instant(),
            exp.ArgMax: lambda node, scope: self._call(
                "max_by", [node.this, node.expression], scope
            ),
            exp.ArgMin: lambda node, scope: self._call(
                "min_by", [node.this, node.expression], scope
            ),
            exp.Ceil: lambda node, scope: self._call("ceil", [node.this], scope),
            exp.Floor: lambda node, scope: self._call("floor", [node.this], scope),
            exp.Any: lambda node, scope: self._call("any", [node.this], scope),
            exp.Anonymous: self._function,
            exp.Struct: self._struct,
            exp.Dot: self._dot,
            exp.Bracket: self._bracket,
            exp.Filter: self._with_clauses,
            exp.Window: self._with_clauses,
        }

    def translate(self, node: exp.Expression, scope: Scope) -> Sql:
        """Return an expression of DuckDB's with the value that Spark gives."""
        if node.args.get("negate"):
            return Sql(f"(NOT {self._plainly(node, scope).text})", BOOLEAN)
        return self._plainly(node, scope)

    def _plainly(self, node: exp.Expression, scope: Scope) -> Sql:
        """Translate a node, but for a NOT inside it."""
        handler = self._nodes.get(type(node))
        if type(node) in operators.COMPARISONS:
            handler = self._comparison
        elif type(node) in operators.ARITHMETIC:
            handler = self._arithmetic
        words = node.sql(dialect="spark")
        if handler is None:
            if isinstance(node, exp.Func) and re.match(r"\w+\(", words):
                raise GoesToSpark(f"function {words.partition('(')[0].lower()}")
            raise GoesToSpark(f"{words} is Spark's to compute")
        said = {key for key, value in node.args.items() if value} - _ARGUMENTS - {"negate"}
        if strange := said - _MORE_ARGUMENTS.get(type(node), set()):
            raise GoesToSpark(f"{min(strange)} in {words}")
        made = handler(node, scope)
        # Only a window or a filter may have what it wraps open; everywhere else it is complete.
        if MARK in made.text and not isinstance(node.parent, _CLAUSES):
            return Sql(made.text.replace(MARK, ""), made.type)
        return made

    def condition(self, node: exp.Expression, scope: Scope) -> str:
        """Return the text of something true or false."""
        made = self.translate(node, scope)
        if made.type not in (BOOLEAN, NULL):
            raise GoesToSpark(f"a condition that is {made.type}")
        return made.text

    def _all(self, nodes: Sequence[exp.Expression], scope: Scope) -> list[Sql]:
        return [self.translate(each, scope) for each in nodes]

    def _both(self, node: exp.Expression, scope: Scope) -> list[Sql]:
        return self._all([node.this, node.expression], scope)

    # Names, numbers, operators.

    def _column(self, node: exp.Column, scope: Scope) -> Sql:
        return scope.resolve([part.name for part in node.parts])

    def _comparison(self, node: exp.Expression, scope: Scope) -> Sql:
        return operators.compare(operators.COMPARISONS[type(node)], *self._both(node, scope))

    def _arithmetic(self, node: exp.Expression, scope: Scope) -> Sql:
        operator = "+" if isinstance(node, exp.Add) else "-" if isinstance(node, exp.Sub) else None
        if operator is not None and isinstance(node.expression, exp.Interval):
            return operators.shift(operator, self.translate(node.this, scope), node.expression)
        if operator == "+" and isinstance(node.this, exp.Interval):
            return operators.shift(operator, self.translate(node.expression, scope), node.this)
        return operators.ARITHMETIC[type(node)](*self._both(node, scope))

    def _negative(self, node: exp.Neg, scope: Scope) -> Sql:
        one = self.translate(node.this, scope)
        if not one.type.is_numeric:
            raise GoesToSpark(f"- {one.type}")
        literal = None if one.literal is None else f"-{one.literal}"
        return Sql(f"(- {one.text})", one.type, literal)

    def _not(self, node: exp.Not, scope: Scope) -> Sql:
        return Sql(f"(NOT {self.condition(node.this, scope)})", BOOLEAN)

    def _logical(self, node: exp.Expression, scope: Scope) -> Sql:
        operator = "AND" if isinstance(node, exp.And) else "OR"
        sides = [self.condition(each, scope) for each in (node.this, node.expression)]
        return Sql(f"({sides[0]} {operator} {sides[1]})", BOOLEAN)

    def _is(self, node: exp.Is, scope: Scope) -> Sql:
        one = self.translate(node.this, scope)
        match node.expression:
            case exp.Null():
                return Sql(f"({one.text} IS NULL)", BOOLEAN)
            case exp.Boolean(this=value) if one.type == BOOLEAN:
                return Sql(f"({one.text} IS {'TRUE' if value else 'FALSE'})", BOOLEAN)
            case _:
                raise GoesToSpark(f"{node.sql(dialect='spark')} is Spark's to compute")

    def _between(self, node: exp.Between, scope: Scope) -> Sql:
        one, low, high = self._all([node.this, node.args["low"], node.args["high"]], scope)
        above, below = operators.compare(">=", one, low), operators.compare("<=", one, high)
        return Sql(f"({above.text} AND {below.text})", BOOLEAN)

    def _in(self, node: exp.In, scope: Scope) -> Sql:
        one = self.translate(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            # Elsewhere Spark's answer for a null is no, and not unknown.
            if not _is_filter(node):
                raise GoesToSpark("IN with a query, other than as a condition of WHERE")
            inner, types = self._subquery(query, scope)
            if list(types) != [one.type]:
                raise GoesToSpark(f"{one.type} in a query of {', '.join(map(str, types))}")
            return Sql(f"({one.text} IN ({inner}))", BOOLEAN)
        if not node.expressions:
            raise GoesToSpark(f"{node.sql(dialect='spark')} is Spark's to compute")
        (value, *others), _ = together([one, *self._all(node.expressions, scope)])
        return Sql(f"({value.text} IN ({', '.join(each.text for each in others)}))", BOOLEAN)

    def _exists(self, node: exp.Exists, scope: Scope) -> Sql:
        inner, _ = self._subquery(node.this, scope)
        return Sql(f"(EXISTS ({inner}))", BOOLEAN)

    def _scalar(self, node: exp.Subquery, scope: Scope) -> Sql:
        inner, types = self._subquery(node, scope)
        if len(types) != 1:
            raise GoesToSpark("a query of several columns as a value")
        return Sql(f"({inner})", types[0])

    def _like(self, node: exp.Like, scope: Scope) -> Sql:
        one, pattern = self._both(node, scope)
        if one.type != STRING or pattern.literal is None or "\\" in pattern.literal:
            raise GoesToSpark(f"{node.sql(dialect='spark')}: its pattern is Spark's to read")
        return Sql(f"({one.text} LIKE {pattern.text})", BOOLEAN)

    # Choices and casts.

    def _case(self, node: exp.Case, scope: Scope) -> Sql:
        subject = None if node.this is None else self.translate(node.this, scope)
        conditions = []
        for each in node.args["ifs"]:
            if subject is None:
                conditions.append(self.condition(each.this, scope))
            else:
                met = operators.compare("=", subject, self.translate(each.this, scope))
                conditions.append(met.text)
        values = self._all([each.args["true"] for each in node.args["ifs"]], scope)
        default = node.args.get("default")
        values.append(Sql("NULL", NULL) if default is None else self.translate(default, scope))
        values, result = together(values)
        whens = (f"WHEN {when} THEN {value.text}"
                 for when, value in zip(conditions, values[:-1], strict=True))  # fmt: skip
        return Sql(f"CASE {' '.join(whens)} ELSE {values[-1].text} END", result)

    def _if(self, node: exp.If, scope: Scope) -> Sql:
        condition, yes = self._all([node.this, node.args["true"]], scope)
        no = node.args.get("false")
        other = Sql("NULL", NULL) if no is None else self.translate(no, scope)
        try:
            return choose(condition, yes, other)
        except Mismatch:
            raise GoesToSpark(f"a condition that is {condition.type}") from None

    def _cast(self, node: exp.Cast, scope: Scope) -> Sql:
        if node.args.get("safe"):
            raise GoesToSpark("function try_cast")
        to = from_sqlglot(node.to)
        one = self.translate(node.this, scope)
        made = cast(one, to)
        is_whole = to.is_integral and one.type.is_integral
        return Sql(made.text, made.type, one.literal if is_whole else None)

    # Functions.

    def _function(self, node: exp.Anonymous, scope: Scope) -> Sql:
        name, args = str(node.this).lower(), node.expressions
        if name == "window":
            return self._window(args, scope)
        if name in ("current_timestamp", "now") and not args:
            return self._instant()
        if name in ("current_date", "curdate") and not args:
            return self._today()
        return self._call(name, args, scope)

    def _call(self, name: str, nodes: Sequence[exp.Expression], scope: Scope) -> Sql:
        distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        if distinct:
            nodes = nodes[0].expressions
        if name == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star):
            nodes = []
        args = self._all(nodes, scope)
        try:
            if name in DISTINCT_AGGREGATES:
                return DISTINCT_AGGREGATES[name](args, distinct=distinct)
            known = FUNCTIONS.get(name) or AGGREGATES.get(name) or WINDOW_FUNCTIONS.get(name)
            if known is None or distinct:
                raise GoesToSpark(f"function {name}")
            return known(args)
        except (Mismatch, IndexError, ValueError, TypeError):
            types = ", ".join(str(each.type) for each in args)
            raise GoesToSpark(f"function {name}({types})") from None

    def _window(self, nodes: Sequence[exp.Expression], scope: Scope) -> Sql:
        args = self._all(nodes, scope)
        try:
            made = window_of(args)
        except Mismatch:
            raise GoesToSpark(
                "function window, other than of a timestamp and a fixed length"
            ) from None
        # Spark leaves rows without a time out.
        condition = f"{args[0].text} IS NOT NULL"
        if condition not in scope.filters:
            scope.filters.append(condition)
        return made

    def _instant(self) -> Sql:
        written = self._now.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        return Sql(plain_cast(text(written), TIMESTAMP), TIMESTAMP)

    def _today(self) -> Sql:
        return Sql(plain_cast(text(self._now.astimezone(UTC).strftime("%Y-%m-%d")), DATE), DATE)

    def _substring(self, node: exp.Substring, scope: Scope) -> Sql:
        nodes = [node.this, node.args["start"], node.args.get("length")]
        args = self._all([each for each in nodes if each is not None], scope)
        try:
            return substring(args)
        except Mismatch:
            raise GoesToSpark(
                f"function substring({', '.join(str(a.type) for a in args)})"
            ) from None

    def _trim(self, node: exp.Trim, scope: Scope) -> Sql:
        if node.expression is not None:
            raise GoesToSpark("function trim of other characters")
        position = (node.args.get("position") or "").upper()
        name = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
        return self._call(name, [node.this], scope)

    def _position(self, node: exp.StrPosition, scope: Scope) -> Sql:
        return self._call("instr", [node.this, node.args["substr"]], scope)

    def _extract(self, node: exp.Extract, scope: Scope) -> Sql:
        name = node.this.name.lower()
        if name not in PARTS or name == "second":
            raise GoesToSpark(f"extract({name})")
        one = self.translate(node.expression, scope)
        try:
            return PARTS[name]([one])
        except Mismatch:
            raise GoesToSpark(f"extract({name} from {one.type})") from None

    # Parts of values.

    def _struct(self, node: exp.Struct, scope: Scope) -> Sql:
        pairs = []
        for at, each in enumerate(node.expressions):
            match each:
                case exp.PropertyEQ() | exp.Alias():
                    value = each.expression if isinstance(each, exp.PropertyEQ) else each.this
                    name = each.this.name if isinstance(each, exp.PropertyEQ) else each.alias
                case exp.Column():
                    name, value = each.name, each
                case _:
                    name, value = f"col{at + 1}", each
            pairs += [exp.Literal.string(name), value.copy()]
        return self._call("named_struct", pairs, scope)

    def _dot(self, node: exp.Dot, scope: Scope) -> Sql:
        return field_of(self.translate(node.this, scope), node.expression.name)

    def _bracket(self, node: exp.Bracket, scope: Scope) -> Sql:
        items = self.translate(node.this, scope)
        if len(node.expressions) != 1:
            raise GoesToSpark(f"{node.sql(dialect='spark')} is Spark's to compute")
        place = self.translate(node.expressions[0], scope)
        if items.type.name == "array" and place.type.is_integral:
            behind = f"({place.text} < 0 OR {place.text} >= len({items.text}))"
            element = f"list_extract({items.text}, {place.text} + 1)"
            return Sql(guard(behind, "a place outside of an array", element), items.type.element)
        if items.type.name == "map":
            try:
                key = fit(place, items.type.parts[0])
            except Mismatch:
                raise GoesToSpark(f"a key that is {place.type} in {items.type}") from None
            return Sql(f"map_extract_value({items.text}, {key.text})", items.type.element)
        raise GoesToSpark(f"{items.type}[{place.type}]")

    def _with_clauses(self, node: exp.Expression, scope: Scope) -> Sql:
        inner = self.translate(node.this, scope)
        if MARK not in inner.text:
            raise GoesToSpark(f"{node.sql(dialect='spark')} is Spark's to compute")
        if isinstance(node, exp.Filter):
            clause = f" FILTER (WHERE {self.condition(node.expression.this, scope)})"
        else:
            clause = over_clause(node, lambda each: self.translate(each, scope).text)
        # A window around a filter goes behind it.
        return Sql(inner.text.replace(MARK, clause + MARK), inner.type)


def _is_filter(node: exp.Expression) -> bool:
    """Whether rows are kept or not by this condition alone."""
    above = node.parent
    if isinstance(above, exp.Not):
        above = above.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where)


def _literal(node: exp.Literal) -> Sql:
    words = node.name
    if node.is_string:
        return Sql(text(words), STRING, words)
    if words.isdigit():
        its_type = INT if int(words) <= _INT_MAX else BIGINT
        return Sql(plain_cast(words, its_type), its_type, words)
    if "e" in words.lower():
        return Sql(plain_cast(words, DOUBLE), DOUBLE, words)
    whole, _, part = words.partition(".")
    its_type = SparkType("decimal", max(len(whole.lstrip("0")) + len(part), 1), len(part))
    return Sql(plain_cast(words, its_type), its_type, words)
