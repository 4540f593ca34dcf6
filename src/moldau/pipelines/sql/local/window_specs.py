"""OVER: partitions, order and frames, with Spark's place for nulls."""

from collections.abc import Callable

from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.refusals import GoesToSpark


def over_clause(node: ParsedNode, translate: Callable[[ParsedNode], str]) -> str:
    """Return ` OVER (...)`."""
    if node.take_word("over") != "OVER":
        raise GoesToSpark(f"{node.words} is Spark's to compute")
    clauses = []
    partitions, order, spec = node.take_list("partition_by"), node.take("order"), node.take("spec")
    if partitions:
        clauses.append("PARTITION BY " + ", ".join(map(translate, partitions)))
    if order is not None:
        orders = order.take_list("expressions")
        clauses.append("ORDER BY " + ", ".join(order_text(each, translate) for each in orders))
    if spec is not None:
        clauses.append(frame_text(spec))
    return f" OVER ({' '.join(clauses)})"


def order_text(node: ParsedNode, translate: Callable[[ParsedNode], str]) -> str:
    """Return an expression of ORDER BY; nulls are the least, unless it is said otherwise."""
    is_descending = bool(node.take_flag("desc"))
    nulls_first = node.take_flag("nulls_first")
    if nulls_first is None:
        nulls_first = not is_descending
    direction = "DESC" if is_descending else "ASC"
    return f"{translate(node.get('this'))} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def frame_text(spec: ParsedNode) -> str:
    """Return a frame, from where to where; DuckDB and Spark write it alike."""
    kind = spec.take_word("kind").upper()
    if kind not in ("ROWS", "RANGE"):
        raise GoesToSpark(f"a frame {spec.words}")
    edges = [_edge(spec, side, kind) for side in ("start", "end")]
    return f"{kind} BETWEEN {edges[0]} AND {edges[1]}"


def _edge(spec: ParsedNode, name: str, kind: str) -> str:
    side = spec.take_word(f"{name}_side").upper()
    if spec.kind_of(name) is str:
        word = spec.take_word(name)
        if word not in ("UNBOUNDED", "CURRENT ROW"):
            raise GoesToSpark(f"a frame from or to {word}")
        return f"{word} {side}".strip()
    edge = spec.take(name)
    if edge is None:
        # `ROWS 2 PRECEDING` ends at the row itself.
        return "CURRENT ROW"
    rows = edge.take_whole()
    if kind != "ROWS" or rows is None:
        raise GoesToSpark(f"a frame from or to {edge.words}")
    return f"{rows} {side}"
