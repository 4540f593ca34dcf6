"""The names that Spark gives to columns without one: what it has understood, written anew."""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.local.casts import read_literal
from moldau.pipelines.sql.local.expressions import column_names, function_name
from moldau.pipelines.sql.local.literals import (
    number_digits,
    number_type,
    shown_interval,
    shown_number,
    shown_time,
)
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.operators import read_interval
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import Scope
from moldau.pipelines.sql.local.types import DATE, SparkType, from_sqlglot
from moldau.pipelines.sql.local.window_specs import frame_text, order_text

TypeOf = Callable[[ParsedNode], SparkType]

_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND",
    exp.Or: "OR", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_OPPOSITES: Final[dict[type[exp.Expr], str]] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
_ROUNDED: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.LT: (ROUND_FLOOR, ROUND_CEILING),
    exp.GTE: (ROUND_FLOOR, ROUND_CEILING),
    exp.GT: (ROUND_CEILING, ROUND_FLOOR),
    exp.LTE: (ROUND_CEILING, ROUND_FLOOR),
}
"""How a decimal on the left, and on the right, is rounded beside a whole number."""
_CALLED: Final = {
    "ceil": "CEIL", "floor": "FLOOR", "sqrt": "SQRT", "rank": "RANK", "dense_rank": "DENSE_RANK",
    "percent_rank": "PERCENT_RANK", "dateadd": "date_add", "curdate": "current_date",
}  # fmt: skip
_WRITTEN: Final = {
    "isnull": "({} IS NULL)",
    "isnotnull": "({} IS NOT NULL)",
    # A cast that is called as a function is not shown.
    "date": "{}",
    "window": "window",
}
_DEFAULTS: Final[dict[str, tuple[str, ...]]] = {
    "round": ("", "0"),
    "substring": ("", "", "2147483647"),
    "substr": ("", "", "2147483647"),
    "lpad": ("", "", " "),
    "rpad": ("", "", " "),
    "locate": ("", "", "1"),
    "position": ("", "", "1"),
    "split": ("", "", "-1"),
    "unix_timestamp": ("", "yyyy-MM-dd HH:mm:ss"),
    "lag": ("", "1", "NULL"),
    "lead": ("", "1", "NULL"),
}
"""The arguments that Spark fills in, by their places."""
_RANKS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "ntile")
_TO_HERE: Final = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def output_name(node: ParsedNode, scope: Scope, type_of: TypeOf) -> str:
    """Return the name of an item of SELECT that has no alias.

    It is Spark's only if all that the item says is in it; what is not goes to Spark.
    """
    reading = node.anew()
    name = _Names(scope, type_of).of_item(reading)
    reading.check()
    return name


class _Names:
    """Names of expressions in one scope."""

    def __init__(self, scope: Scope, type_of: TypeOf) -> None:
        self._scope = scope
        self._type_of = type_of
        self._kinds: dict[type[exp.Expr], Callable[[ParsedNode], str]] = {
            exp.Column: self._column,
            exp.Literal: _literal,
            exp.Boolean: lambda node: str(node.take_flag("this")).lower(),
            exp.Null: lambda _: "NULL",
            exp.Paren: lambda node: self.of(node.get("this")),
            exp.Neg: self._negative,
            exp.Not: lambda node: f"(NOT {self.of(node.get('this'))})",
            exp.Is: self._is,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Like: self._like,
            exp.Exists: lambda node: self._query(node, "exists"),
            exp.Subquery: lambda node: self._query(node, "scalarsubquery"),
            exp.Case: self._case,
            exp.If: self._if,
            exp.Cast: self._typed,
            exp.TryCast: self._cast,
            exp.DPipe: lambda node: f"concat({self._both(node, ', ')})",
            exp.Substring: self._substring,
            exp.Trim: self._trim,
            exp.StrPosition: self._position,
            exp.Extract: self._extract,
            exp.CurrentDate: lambda _: "current_date()",
            exp.CurrentTimestamp: lambda _: "current_timestamp()",
            exp.Any: lambda node: f"any({self.of(node.get('this'))})",
            exp.Anonymous: self._function,
            exp.Distinct: lambda node: f"DISTINCT {self._list(node.take_list('expressions'))}",
            exp.Star: lambda _: "1",
            exp.Dot: lambda node: (
                f"{self.of(node.get('this'))}.{node.get('expression').take_name()}"
            ),
            exp.Bracket: lambda node: (
                f"{self.of(node.get('this'))}[{self._list(node.take_list('expressions'))}]"
            ),
            exp.Filter: self._filter,
            exp.Window: self._window,
            **dict.fromkeys(_OPERATORS, self._operator),
            **dict.fromkeys(_OPPOSITES, self._opposite),
        }

    def of_item(self, node: ParsedNode) -> str:
        """Return the name of an item: that of a column is its own, whatever it is cast to."""
        while node.kind is exp.Paren:
            node = node.get("this")
        if node.kind is exp.Column:
            return column_names(node)[-1]
        if node.kind is exp.Dot and self._is_field(node):
            self.of(node.get("this"))
            return node.get("expression").take_name()
        if node.kind is exp.TryCast:
            inner = node.get("this")
            while inner.kind is exp.Paren:
                inner = inner.get("this")
            if inner.kind is exp.Column and len(self._scope.find(column_names(inner)).names) == 1:
                from_sqlglot(node.get("to"))
                return column_names(inner)[-1]
        return self.of(node)

    def of(self, node: ParsedNode) -> str:
        """Return the name of an expression inside another one."""
        handler = self._kinds.get(node.kind)
        if handler is None:
            raise GoesToSpark(f"the name of {node.words}")
        return handler(node)

    def _list(self, nodes: Sequence[ParsedNode]) -> str:
        return ", ".join(map(self.of, nodes))

    def _both(self, node: ParsedNode, between: str) -> str:
        return between.join(self.of(node.get(each)) for each in ("this", "expression"))

    # Names, numbers, operators.

    def _column(self, node: ParsedNode) -> str:
        found = self._scope.find(column_names(node))
        if found.is_alias and found.names[0].lower() != "window":
            return f"lateralAliasReference({found.names[-1]})"
        return ".".join(found.names)

    def _is_field(self, node: ParsedNode) -> bool:
        """Whether a dot is one of a column's name, which sqlglot reads up to four parts of."""
        inner = node.get("this")
        return inner.kind is exp.Column or (inner.kind is exp.Dot and self._is_field(inner))

    def _operator(self, node: ParsedNode) -> str:
        if node.kind in (exp.Add, exp.Sub):
            one, other = node.get("this"), node.get("expression")
            sign = _OPERATORS[node.kind]
            if other.kind is exp.Interval:
                return self._shifted(one, sign, other)
            if one.kind is exp.Interval:
                return self._shifted(other, sign, one)
        if node.kind in _ROUNDED:
            return self._ordering(node)
        if node.kind in (exp.And, exp.Or):
            return self._connected(node)
        return f"({self._both(node, f' {_OPERATORS[node.kind]} ')})"

    def _connected(self, node: ParsedNode) -> str:
        """Return conditions; Spark makes a tree of many that is the same on both sides."""
        chain = [node]
        while chain[0].kind is node.kind:
            chain[:1] = [chain[0].get("this"), chain[0].get("expression")]
        word = _OPERATORS[node.kind]

        def balanced(names: list[str]) -> str:
            if len(names) == 1:
                return names[0]
            half = (len(names) + 1) // 2
            return f"({balanced(names[:half])} {word} {balanced(names[half:])})"

        return balanced([self.of(each) for each in chain])

    def _ordering(self, node: ParsedNode) -> str:
        """Return a comparison; beside a whole number, Spark rounds a written decimal."""
        sides = [node.get("this"), node.get("expression")]
        names = [self.of(each) for each in sides]
        for at, rounding in enumerate(_ROUNDED[node.kind]):
            number, other = _written_number(sides[at]), sides[1 - at]
            if number is None or number_type(number).name != "decimal":
                continue
            if self._type_of(other.anew()).is_integral:
                digits = Decimal(number_digits(number))
                names[at] = str(int(digits.to_integral_value(rounding)))
        return f"({f' {_OPERATORS[node.kind]} '.join(names)})"

    def _opposite(self, node: ParsedNode) -> str:
        return f"(NOT ({self._both(node, f' {_OPPOSITES[node.kind]} ')}))"

    def _shifted(self, when: ParsedNode, sign: str, interval: ParsedNode) -> str:
        count, unit = read_interval(interval)
        shown = shown_interval(count, unit)
        if unit in ("day", "week") and self._type_of(when.anew()) == DATE:
            days = f"extractansiintervaldays({shown})"
            return f"date_add({self.of(when)}, {days if sign == '+' else f'(- {days})'})"
        return f"{self.of(when)} {sign} {shown}"

    def _negative(self, node: ParsedNode) -> str:
        inner = node.get("this")
        return _literal(inner, "-") if inner.kind is exp.Literal else f"(- {self.of(inner)})"

    def _is(self, node: ParsedNode) -> str:
        one, what = self.of(node.get("this")), node.get("expression")
        is_not = bool(node.take_flag("negate"))
        if what.kind is exp.Null:
            return f"({one} IS {'NOT ' if is_not else ''}NULL)"
        name = f"({one} <=> {self.of(what)})"
        return f"(NOT {name})" if is_not else name

    def _between(self, node: ParsedNode) -> str:
        return f"between({self._list([node.get(each) for each in ('this', 'low', 'high')])})"

    def _in(self, node: ParsedNode) -> str:
        return f"({self.of(node.get('this'))} IN ({self._list(node.take_list('expressions'))}))"

    def _like(self, node: ParsedNode) -> str:
        name = self._both(node, " LIKE ")
        return f"(NOT {name})" if node.take_flag("negate") else name

    def _query(self, node: ParsedNode, name: str) -> str:
        if self._scope.is_lent:
            raise GoesToSpark("the name of a query that has columns from around it")
        node.take_all()
        return f"{name}()"

    # Choices and casts.

    def _case(self, node: ParsedNode) -> str:
        tested, default = node.take("this"), node.take("default")
        whens = ""
        for each in node.take_list("ifs"):
            condition = self.of(each.get("this"))
            if tested is not None:
                condition = f"({self.of(tested)} = {condition})"
            whens += f"WHEN {condition} THEN {self.of(each.get('true'))} "
        return f"CASE {whens}{'' if default is None else f'ELSE {self.of(default)} '}END"

    def _if(self, node: ParsedNode) -> str:
        nodes = [node.get("this"), node.get("true"), node.get("false")]
        return f"(IF({self._list(nodes)}))"

    def _typed(self, node: ParsedNode) -> str:
        """Return a literal with its type before it."""
        words = node.get("this").take_text()
        if words is None:
            raise GoesToSpark(f"the name of {node.words}")
        return shown_time(read_literal(words, from_sqlglot(node.get("to"))))

    def _cast(self, node: ParsedNode) -> str:
        node.take_flag("safe")
        inner, to = node.get("this"), from_sqlglot(node.get("to"))
        if to.parts:
            raise GoesToSpark(f"the name of {node.words}")
        return f"CAST({self.of(inner)} AS {str(to).upper()})"

    # Functions.

    def _function(self, node: ParsedNode) -> str:
        name, args = function_name(node), node.take_list("expressions")
        texts = list(map(self.of, args))
        texts += _DEFAULTS.get(name, ())[len(texts) :]
        shown = ", ".join(texts)
        if name in _WRITTEN:
            return _WRITTEN[name].format(shown)
        return f"{_CALLED.get(name, name)}({shown})"

    def _substring(self, node: ParsedNode) -> str:
        texts = [self.of(node.get("this")), self.of(node.get("start"))]
        length = node.take("length")
        texts.append("2147483647" if length is None else self.of(length))
        return f"substring({', '.join(texts)})"

    def _trim(self, node: ParsedNode) -> str:
        position = node.take_word("position").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
        return f"{name}({self.of(node.get('this'))})"

    def _position(self, node: ParsedNode) -> str:
        return f"locate({self.of(node.get('substr'))}, {self.of(node.get('this'))}, 1)"

    def _extract(self, node: ParsedNode) -> str:
        return f"extract({node.get('this').take_name()} FROM {self.of(node.get('expression'))})"

    # Aggregates and windows.

    def _filter(self, node: ParsedNode) -> str:
        condition = node.get("expression").get("this")
        return f"{self.of(node.get('this'))} FILTER (WHERE {self.of(condition)})"

    def _window(self, node: ParsedNode) -> str:
        node.take_word("over")
        function, order, spec = node.get("this"), node.take("order"), node.take("spec")
        partitions = node.take_list("partition_by")
        clauses = [f"PARTITION BY {self._list(partitions)}"] if partitions else []
        if order is not None:
            orders = order.take_list("expressions")
            texts = (order_text(each, self.of) for each in orders)
            clauses.append(f"ORDER BY {', '.join(texts)}")
        clauses.append(
            self._usual_frame(function, is_ordered=order is not None)
            if spec is None
            else frame_text(spec)
        )
        return f"{self.of(function)} OVER ({' '.join(clauses)})"

    def _usual_frame(self, function: ParsedNode, *, is_ordered: bool) -> str:
        name = function_name(function) if function.kind is exp.Anonymous else ""
        if name in ("lag", "lead"):
            args = function.take_list("expressions")
            rows = int(self.of(args[1]) if len(args) > 1 else "1") * (1 if name == "lead" else -1)
            return f"ROWS BETWEEN {rows} FOLLOWING AND {rows} FOLLOWING"
        if name in _RANKS:
            return f"ROWS {_TO_HERE}"
        if is_ordered or name == "cume_dist":
            return f"RANGE {_TO_HERE}"
        return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _written_number(node: ParsedNode) -> str | None:
    """Return a number that is written, with its sign, None if it is none."""
    while node.kind is exp.Paren:
        node = node.get("this")
    if node.kind is exp.Neg:
        number = node.get("this").take_number()
        return None if number is None else f"-{number}"
    return node.take_number()


def _literal(node: ParsedNode, sign: str = "") -> str:
    words = node.take_text()
    return shown_number(f"{sign}{node.take_number()}") if words is None else words
