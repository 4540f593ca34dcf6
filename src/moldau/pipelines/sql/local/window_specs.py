"""OVER: partitions, order and frames, with Spark's place for nulls."""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.local.refusals import GoesToSpark

_KNOWN: Final = {"this", "partition_by", "order", "spec", "over", "alias"}


def over_clause(node: exp.Expression, translate: Callable[[exp.Expression], str]) -> str:
    """Return ` OVER (...)`."""
    strange = {key for key, value in node.args.items() if value} - _KNOWN
    if strange or node.args.get("alias") or node.args.get("over") != "OVER":
        raise GoesToSpark(f"{node.sql(dialect='spark')} is Spark's to compute")
    clauses = []
    if node.args.get("partition_by"):
        clauses.append("PARTITION BY " + ", ".join(map(translate, node.args["partition_by"])))
    if node.args.get("order"):
        orders = node.args["order"].expressions
        clauses.append("ORDER BY " + ", ".join(order_text(each, translate) for each in orders))
    if node.args.get("spec"):
        clauses.append(_frame(node.args["spec"]))
    return f" OVER ({' '.join(clauses)})"


def order_text(node: exp.Ordered, translate: Callable[[exp.Expression], str]) -> str:
    """Return an expression of ORDER BY; nulls are the least, unless it is said otherwise."""
    is_descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    if nulls_first is None:
        nulls_first = not is_descending
    direction = "DESC" if is_descending else "ASC"
    return f"{translate(node.this)} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _frame(spec: exp.WindowSpec) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    edges = [
        _edge(spec.args.get(side), spec.args.get(f"{side}_side"), kind) for side in ("start", "end")
    ]
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise GoesToSpark(f"a frame {spec.sql(dialect='spark')}")
    return f"{kind} BETWEEN {edges[0]} AND {edges[1]}"


def _edge(edge: object, side: object, kind: str) -> str:
    match edge:
        case None | "CURRENT ROW":
            return "CURRENT ROW"
        case "UNBOUNDED":
            return f"UNBOUNDED {str(side).upper()}"
        case exp.Literal() if kind == "ROWS" and edge.name.isdigit():
            return f"{edge.name} {str(side).upper()}"
        case _:
            raise GoesToSpark(f"a frame from or to {edge}")
