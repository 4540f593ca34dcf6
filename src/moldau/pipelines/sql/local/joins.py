"""Joins: with ON, with USING, and without either."""

from collections.abc import Callable
from typing import Final

from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.operators import compare
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.scopes import FromSource, Scope, Sql
from moldau.pipelines.sql.local.signatures import together

_KINDS: Final = {
    ("", ""): "JOIN", ("", "INNER"): "JOIN", ("", "CROSS"): "CROSS JOIN",
    ("LEFT", ""): "LEFT JOIN", ("LEFT", "OUTER"): "LEFT JOIN", ("RIGHT", ""): "RIGHT JOIN",
    ("RIGHT", "OUTER"): "RIGHT JOIN", ("FULL", ""): "FULL JOIN", ("FULL", "OUTER"): "FULL JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN", ("LEFT", "ANTI"): "ANTI JOIN", ("", "SEMI"): "SEMI JOIN",
    ("", "ANTI"): "ANTI JOIN",
}  # fmt: skip


def join_source(
    node: ParsedNode,
    text: str,
    source: FromSource,
    scope: Scope,
    condition: Callable[[ParsedNode], str],
) -> str:
    """Return a join's text; its source is one of the scope's then."""
    side = node.take_word("side").upper()
    kind = _KINDS.get((side, node.take_word("kind").upper()))
    if kind is None:
        raise GoesToSpark(f"join {node.words}")
    using = [each.take_name() for each in node.take_list("using")]
    said = node.take("on")
    node.check_own()
    if using:
        on = " AND ".join(_merge(name, source, scope, side) for name in using)
        scope.sources.append(source)
    else:
        scope.sources.append(source)
        on = "" if said is None else condition(said)
    if not on:
        # As Spark has it, a join without a condition is one of all with all.
        if kind not in ("JOIN", "CROSS JOIN"):
            raise GoesToSpark(f"a {kind} without a condition")
        return f" CROSS JOIN {text}"
    if kind in ("SEMI JOIN", "ANTI JOIN"):
        scope.sources.pop()
    return f" {'JOIN' if kind == 'CROSS JOIN' else kind} {text} ON {on}"


def _merge(name: str, source: FromSource, scope: Scope, side: str) -> str:
    right = source.find(name)
    if right is None:
        raise QueryError(f"USING ({name}): {source.alias} has no such column")
    left = scope.resolve([name])
    (one, other), common = together([left, right])
    chosen = {"RIGHT": other.text, "FULL": f"coalesce({one.text}, {other.text})"}
    scope.merged[name.lower()] = Sql(chosen.get(side, one.text), common)
    return compare("=", left, right).text
