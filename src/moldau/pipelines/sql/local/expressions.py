"""Expressions from Spark's SQL to DuckDB's, each with its type; what is unknown goes to Spark."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.local import operators
from moldau.pipelines.sql.local.aggregates import (
    AGGREGATES,
    DISTINCT_AGGREGATES,
    FRAMELESS,
    WINDOW_FUNCTIONS,
)
from moldau.pipelines.sql.local.casts import cast, guard, plain_cast
from moldau.pipelines.sql.local.functions import FUNCTIONS, choose
from moldau.pipelines.sql.local.literals import number_digits, number_type
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.refusals import GoesToSpark, NoColumnError
from moldau.pipelines.sql.local.scopes import MARK, Scope, Sql, field_of
from moldau.pipelines.sql.local.signatures import Mismatch, fit, together
from moldau.pipelines.sql.local.time_functions import PARTS, window_of
from moldau.pipelines.sql.local.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    SparkType,
    from_sqlglot,
    text,
)
from moldau.pipelines.sql.local.window_specs import over_clause

Subquery = Callable[[ParsedNode, Scope], tuple[str, Sequence[SparkType]]]
"""Translates a query inside an expression: its text, and the types of its columns."""

_CLAUSES: Final = (exp.Filter, exp.Window)
_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_WITH_UNITS: Final = (
    "timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff", "timediff",
)  # fmt: skip
_UNIT_ARGUMENTS: Final = 3
_BARE_FUNCTIONS: Final = ("current_time", "user", "session_user", "grouping__id")
"""Functions that Spark takes without parentheses, where no column has that name."""


class Expressions:
    """Translates expressions of one query."""

    def __init__(self, subquery: Subquery, now: datetime) -> None:
        self._subquery = subquery
        self._now = now
        self._nodes: dict[type[exp.Expr], Callable[[ParsedNode, Scope], Sql]] = {
            exp.Column: self._column,
            exp.Literal: lambda node, _: _literal(node),
            exp.Boolean: lambda node, _: Sql(str(node.take_flag("this")).lower(), BOOLEAN),
            exp.Null: lambda _node, _: Sql("NULL", NULL),
            exp.Paren: lambda node, scope: self.translate(node.get("this"), scope),
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
                "concat", [node.get("this"), node.get("expression")], scope
            ),
            exp.Substring: self._substring,
            exp.Trim: self._trim,
            exp.StrPosition: self._position,
            exp.Extract: self._extract,
            exp.CurrentDate: lambda _node, scope: self._bare("current_date", scope),
            exp.CurrentTimestamp: lambda _node, scope: self._bare("current_timestamp", scope),
            exp.Any: lambda node, scope: self._call("any", [node.get("this")], scope),
            exp.Anonymous: self._function,
            exp.Dot: self._dot,
            exp.Bracket: self._bracket,
            exp.Filter: self._with_clauses,
            exp.Window: self._with_clauses,
            **dict.fromkeys(operators.COMPARISONS, self._comparison),
            **dict.fromkeys(operators.ARITHMETIC, self._arithmetic),
        }

    def translate(self, node: ParsedNode, scope: Scope) -> Sql:
        """Return an expression of DuckDB's with the value that Spark gives."""
        handler = self._nodes.get(node.kind)
        if handler is None:
            if issubclass(node.kind, exp.Func) and re.match(r"\w+\(", node.words):
                raise GoesToSpark(f"function {node.words.partition('(')[0].lower()}")
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        made = handler(node, scope)
        # Only a window or a filter may have what it wraps open; everywhere else it is complete.
        if MARK in made.text and (node.parent is None or node.parent.kind not in _CLAUSES):
            return Sql(made.text.replace(MARK, ""), made.type)
        return made

    def condition(self, node: ParsedNode, scope: Scope) -> str:
        """Return the text of something true or false."""
        made = self.translate(node, scope)
        if made.type not in (BOOLEAN, NULL):
            raise GoesToSpark(f"a condition that is {made.type}")
        return made.text

    def _all(self, nodes: Sequence[ParsedNode], scope: Scope) -> list[Sql]:
        return [self.translate(each, scope) for each in nodes]

    def _both(self, node: ParsedNode, scope: Scope) -> list[Sql]:
        return self._all([node.get("this"), node.get("expression")], scope)

    # Names, numbers, operators.

    def _column(self, node: ParsedNode, scope: Scope) -> Sql:
        names = column_names(node)
        try:
            return scope.resolve(names)
        except NoColumnError:
            if len(names) == 1 and names[0].lower() in _BARE_FUNCTIONS:
                raise GoesToSpark(f"function {names[0].lower()}") from None
            raise

    def _bare(self, name: str, scope: Scope) -> Sql:
        """Return a function without parentheses, if it is no column."""
        try:
            scope.resolve([name])
        except NoColumnError:
            return self._function_of(name, [], scope)
        raise GoesToSpark(f"{name} is a column, and a function")

    def _comparison(self, node: ParsedNode, scope: Scope) -> Sql:
        return operators.compare(operators.COMPARISONS[node.kind], *self._both(node, scope))

    def _arithmetic(self, node: ParsedNode, scope: Scope) -> Sql:
        operator = "+" if node.kind is exp.Add else "-" if node.kind is exp.Sub else None
        one, other = node.get("this"), node.get("expression")
        if operator is not None and other.kind is exp.Interval:
            return operators.shift(operator, self.translate(one, scope), other)
        if operator == "+" and one.kind is exp.Interval:
            return operators.shift(operator, self.translate(other, scope), one)
        return operators.ARITHMETIC[node.kind](*self._all([one, other], scope))

    def _negative(self, node: ParsedNode, scope: Scope) -> Sql:
        inner = node.get("this")
        if inner.kind is exp.Literal:
            return _literal(inner, "-")
        one = self.translate(inner, scope)
        if not one.type.is_numeric:
            raise GoesToSpark(f"- {one.type}")
        # DuckDB takes a wider type for the least number of one.
        return Sql(plain_cast(f"(- {one.text})", one.type), one.type)

    def _not(self, node: ParsedNode, scope: Scope) -> Sql:
        return Sql(f"(NOT {self.condition(node.get('this'), scope)})", BOOLEAN)

    def _logical(self, node: ParsedNode, scope: Scope) -> Sql:
        operator = "AND" if node.kind is exp.And else "OR"
        sides = [self.condition(node.get(each), scope) for each in ("this", "expression")]
        return Sql(f"({sides[0]} {operator} {sides[1]})", BOOLEAN)

    def _is(self, node: ParsedNode, scope: Scope) -> Sql:
        one, what = self.translate(node.get("this"), scope), node.get("expression")
        if what.kind is exp.Null:
            made = f"({one.text} IS NULL)"
        elif what.kind is exp.Boolean and one.type == BOOLEAN:
            made = f"({one.text} IS {str(what.take_flag('this')).upper()})"
        else:
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        return _negated(node, Sql(made, BOOLEAN))

    def _between(self, node: ParsedNode, scope: Scope) -> Sql:
        one, low, high = self._all([node.get(each) for each in ("this", "low", "high")], scope)
        above, below = operators.compare(">=", one, low), operators.compare("<=", one, high)
        return Sql(f"({above.text} AND {below.text})", BOOLEAN)

    def _in(self, node: ParsedNode, scope: Scope) -> Sql:
        one = self.translate(node.get("this"), scope)
        query = node.take("query")
        if query is not None:
            # Elsewhere Spark's answer for a null is no, and not unknown.
            if not _is_filter(node):
                raise GoesToSpark("IN with a query, other than as a condition of WHERE")
            inner, types = self._subquery(query, scope)
            if list(types) != [one.type]:
                raise GoesToSpark(f"{one.type} in a query of {', '.join(map(str, types))}")
            return Sql(f"({one.text} IN ({inner}))", BOOLEAN)
        choices = node.take_list("expressions")
        if not choices:
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        (value, *others), _ = together([one, *self._all(choices, scope)])
        return Sql(f"({value.text} IN ({', '.join(each.text for each in others)}))", BOOLEAN)

    def _exists(self, node: ParsedNode, scope: Scope) -> Sql:
        inner, _ = self._subquery(node.get("this"), scope)
        return Sql(f"(EXISTS ({inner}))", BOOLEAN)

    def _scalar(self, node: ParsedNode, scope: Scope) -> Sql:
        inner, types = self._subquery(node, scope)
        if len(types) != 1:
            raise GoesToSpark("a query of several columns as a value")
        return Sql(f"({inner})", types[0])

    def _like(self, node: ParsedNode, scope: Scope) -> Sql:
        one, pattern = self._both(node, scope)
        if one.type != STRING or pattern.literal is None or "\\" in pattern.literal:
            raise GoesToSpark(f"{node.words}: its pattern is Spark's to read")
        return _negated(node, Sql(f"({one.text} LIKE {pattern.text})", BOOLEAN))

    # Choices and casts.

    def _case(self, node: ParsedNode, scope: Scope) -> Sql:
        tested, whens, default = node.take("this"), node.take_list("ifs"), node.take("default")
        subject = None if tested is None else self.translate(tested, scope)
        conditions = []
        for each in whens:
            if subject is None:
                conditions.append(self.condition(each.get("this"), scope))
            else:
                met = operators.compare("=", subject, self.translate(each.get("this"), scope))
                conditions.append(met.text)
        values = self._all([each.get("true") for each in whens], scope)
        values.append(Sql("NULL", NULL) if default is None else self.translate(default, scope))
        values, result = together(values)
        texts = (f"WHEN {when} THEN {value.text}"
                 for when, value in zip(conditions, values[:-1], strict=True))  # fmt: skip
        return Sql(f"CASE {' '.join(texts)} ELSE {values[-1].text} END", result)

    def _if(self, node: ParsedNode, scope: Scope) -> Sql:
        condition, yes = self._all([node.get("this"), node.get("true")], scope)
        no = node.take("false")
        other = Sql("NULL", NULL) if no is None else self.translate(no, scope)
        try:
            return choose(condition, yes, other)
        except Mismatch:
            raise GoesToSpark(f"a condition that is {condition.type}") from None

    def _cast(self, node: ParsedNode, scope: Scope) -> Sql:
        if node.take_flag("safe"):
            raise GoesToSpark("function try_cast")
        to = from_sqlglot(node.get("to"))
        one = self.translate(node.get("this"), scope)
        return Sql(cast(one, to).text, to)

    # Functions.

    def _function(self, node: ParsedNode, scope: Scope) -> Sql:
        return self._function_of(function_name(node), node.take_list("expressions"), scope)

    def _function_of(self, name: str, args: Sequence[ParsedNode], scope: Scope) -> Sql:
        if name == "window":
            return self._window(args, scope)
        if name in ("current_timestamp", "now") and not args:
            return self._instant()
        if name in ("current_date", "curdate") and not args:
            return self._today()
        if name in _WITH_UNITS and len(args) == _UNIT_ARGUMENTS:
            # The first one is a word such as DAY, and no column.
            raise GoesToSpark(f"function {name} with a unit")
        return self._call(name, args, scope)

    def _call(self, name: str, nodes: Sequence[ParsedNode], scope: Scope) -> Sql:
        known = FUNCTIONS.get(name) or AGGREGATES.get(name) or WINDOW_FUNCTIONS.get(name)
        aggregate = DISTINCT_AGGREGATES.get(name)
        if known is None and aggregate is None:
            # Before its arguments: what they are is the function's to say.
            raise GoesToSpark(f"function {name}")
        distinct = len(nodes) == 1 and nodes[0].kind is exp.Distinct
        if distinct:
            nodes = nodes[0].take_list("expressions")
        if name == "count" and len(nodes) == 1 and nodes[0].kind is exp.Star:
            nodes = []
        args = self._all(nodes, scope)
        try:
            if aggregate is not None:
                return aggregate(args, distinct=distinct)
            if known is None or distinct:
                raise GoesToSpark(f"function {name} of what is distinct")
            return known(args)
        except (Mismatch, IndexError, ValueError, TypeError):
            types = ", ".join(str(each.type) for each in args)
            raise GoesToSpark(f"function {name}({types})") from None

    def _window(self, nodes: Sequence[ParsedNode], scope: Scope) -> Sql:
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

    def _substring(self, node: ParsedNode, scope: Scope) -> Sql:
        nodes = [node.get("this"), node.get("start"), node.take("length")]
        return self._call("substring", [each for each in nodes if each is not None], scope)

    def _trim(self, node: ParsedNode, scope: Scope) -> Sql:
        name = _TRIMS.get(node.take_word("position").upper())
        if name is None:
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        return self._call(name, [node.get("this")], scope)

    def _position(self, node: ParsedNode, scope: Scope) -> Sql:
        return self._call("instr", [node.get("this"), node.get("substr")], scope)

    def _extract(self, node: ParsedNode, scope: Scope) -> Sql:
        name = node.get("this").take_name().lower()
        if name not in PARTS or name == "second":
            raise GoesToSpark(f"extract({name})")
        one = self.translate(node.get("expression"), scope)
        try:
            return PARTS[name]([one])
        except Mismatch:
            raise GoesToSpark(f"extract({name} from {one.type})") from None

    # Parts of values.

    def _dot(self, node: ParsedNode, scope: Scope) -> Sql:
        inner, name = node.get("this"), node.get("expression")
        if name.kind is not exp.Identifier:
            # A function of a schema, such as `f.g(x)`.
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        return field_of(self.translate(inner, scope), name.take_name())

    def _bracket(self, node: ParsedNode, scope: Scope) -> Sql:
        items, places = self.translate(node.get("this"), scope), node.take_list("expressions")
        if len(places) != 1:
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        place = self.translate(places[0], scope)
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

    def _with_clauses(self, node: ParsedNode, scope: Scope) -> Sql:
        inner = self.translate(node.get("this"), scope)
        if MARK not in inner.text:
            raise GoesToSpark(f"{node.words} is Spark's to compute")
        if node.kind is exp.Filter:
            condition = node.get("expression").get("this")
            clause = f" FILTER (WHERE {self.condition(condition, scope)})"
        else:
            self._check_window(node)
            clause = over_clause(node, lambda each: self.translate(each, scope).text)
        # A window around a filter goes behind it.
        return Sql(inner.text.replace(MARK, clause + MARK), inner.type)

    def _check_window(self, node: ParsedNode) -> None:
        """Leave to Spark what it refuses."""
        function = node.get("this")
        if any(True for _ in function.find_all(exp.Distinct)):
            raise GoesToSpark("a window of what is distinct")
        name = function_name(function) if function.kind is exp.Anonymous else ""
        if name in FRAMELESS and node.take("spec") is not None:
            raise GoesToSpark(f"a frame for {name}")


def column_names(node: ParsedNode) -> list[str]:
    """Return the parts of a column's name, from the widest on."""
    parts = [node.take(each) for each in ("catalog", "db", "table", "this")]
    return [each.take_name() for each in parts if each is not None]


def function_name(node: ParsedNode) -> str:
    """Return what a function is called, in small letters."""
    # In backquotes it is a name, elsewhere a word.
    is_quoted = node.kind_of("this") is exp.Identifier
    return (node.get("this").take_name() if is_quoted else node.take_word("this")).lower()


def _negated(node: ParsedNode, made: Sql) -> Sql:
    """Return a condition, or its opposite where sqlglot has kept a NOT inside."""
    return Sql(f"(NOT {made.text})", BOOLEAN) if node.take_flag("negate") else made


def _is_filter(node: ParsedNode) -> bool:
    """Whether rows are kept or not by this condition alone."""
    above = node.parent
    if above is not None and above.kind is exp.Not:
        above = above.parent
    while above is not None and above.kind in (exp.And, exp.Paren):
        above = above.parent
    return above is not None and above.kind is exp.Where


def _literal(node: ParsedNode, sign: str = "") -> Sql:
    words = node.take_text()
    if words is not None:
        if sign:
            raise GoesToSpark("- string")
        return Sql(text(words), STRING, words)
    number = f"{sign}{node.take_number()}"
    its_type, digits = number_type(number), number_digits(number)
    # A double's digits are read as a text, or -0.0 would lose its sign.
    written = text(digits) if its_type == DOUBLE else digits
    return Sql(plain_cast(written, its_type), its_type, digits)
