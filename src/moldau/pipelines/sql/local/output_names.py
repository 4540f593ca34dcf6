"""The names that Spark gives to columns without one."""

from typing import Final

from sqlglot import exp

_OPERATORS: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND",
    exp.Or: "OR",
}  # fmt: skip


def output_name(node: exp.Expression) -> str:
    """Return the alias, the column's name, or the expression as Spark writes it."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Anonymous() if str(node.this).lower() == "window":
            return "window"
        case _:
            return _words(node)


def _words(node: exp.Expression) -> str:  # noqa: PLR0911 - one for each kind
    match node:
        case exp.Column():
            return ".".join(part.name for part in node.parts)
        case exp.Literal():
            return node.name
        case exp.Paren():
            return _words(node.this)
        case exp.Star():
            return "1"
        case exp.Distinct():
            return "DISTINCT " + ", ".join(map(_words, node.expressions))
        case exp.Anonymous():
            return f"{str(node.this).lower()}({', '.join(map(_words, node.expressions))})"
        case exp.Cast():
            return f"CAST({_words(node.this)} AS {node.to.sql(dialect='spark')})"
        case exp.Neg():
            return f"(- {_words(node.this)})"
        case _ if type(node) in _OPERATORS:
            sides = _words(node.this), _words(node.expression)
            return f"({sides[0]} {_OPERATORS[type(node)]} {sides[1]})"
        case exp.Filter():
            return f"{_words(node.this)} FILTER (WHERE {_words(node.expression.this)})"
        case _:
            words = node.sql(dialect="spark")
            name, bracket, rest = words.partition("(")
            return name.lower() + bracket + rest if name.isidentifier() else words
