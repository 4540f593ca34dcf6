"""Which tables, pseudo columns and columns of records a query uses, and where in its text."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.language.column_types import quote
from moldau.pipelines.sql.language.lexing import split
from moldau.pipelines.sql.language.queries import (
    AsOf,
    Metadata,
    Pseudo,
    PseudoUse,
    QueryPiece,
    SampleEnd,
    StarUse,
    TableUse,
)
from moldau.pipelines.sql.language.rewriting import Rewritten, TextEdit

_PSEUDO: Final = {each.value: each for each in Pseudo}
_METADATA: Final = {each.value: each for each in Metadata}
_LEFT_OUT: Final = re.compile(r"\s*EXCEPT\s*\(", re.IGNORECASE)
_LEFT_ONLY: Final = ("SEMI", "ANTI")
"""Joins that have the columns of their left side only."""


class Uses:
    """The tables and the pseudo columns of a query, by where they are in its text."""

    def __init__(self, query: exp.Query, rewritten: Rewritten, times: Mapping[int, AsOf]) -> None:
        self._found: dict[TextEdit, QueryPiece] = {}
        self.metadata: set[tuple[TableUse, Metadata]] = set()
        """What may be asked for of records, by the table that it is of."""
        self._text = rewritten.text
        self.by_end: dict[int, TableUse] = {}
        """By where the name ends in the original text."""
        self._by_node: dict[int, TableUse] = {}
        for node in query.find_all(exp.Table):
            parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
            if not parts or _is_elsewhere(node) or not self._is_in_place(parts):
                continue
            start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
            # The last character's place: that behind it may be behind something that was cut out.
            original_end = rewritten.origin(end - 1) + 1
            names = tuple(part.name for part in parts)
            is_sampled = bool(node.args.get("sample"))
            use = TableUse(names, node.alias or None, times.get(original_end), is_sampled)
            self._by_node[id(node)] = self.by_end[original_end] = use
            self._found[TextEdit(start, end, "")] = use
            if is_sampled:
                sample_end = _sample_end(self._text, end)
                self._found[TextEdit(sample_end, sample_end, "")] = SampleEnd(use)
        for column in query.find_all(exp.Column):
            self._add_pseudo(column)
            self._add_metadata(column)
        for star in query.find_all(exp.Star):
            self._add_star(star)

    @property
    def found(self) -> list[tuple[TextEdit, QueryPiece]]:
        """What is to be named by the query's runner, in the order of the text."""
        return sorted(self._found.items(), key=lambda each: each[0])

    def _is_in_place(self, parts: Sequence[exp.Expr]) -> bool:
        """Return whether these names are where they say: sqlglot makes up some of its own."""
        return all(
            "start" in part.meta
            and self._text[part.meta["start"] : part.meta["end"] + 1].strip("`") == part.name
            for part in (parts[0], parts[-1])
        )

    def _add_pseudo(self, node: exp.Column) -> None:
        name = node.this
        if not isinstance(name, exp.Identifier) or name.args.get("quoted"):
            return
        pseudo = _PSEUDO.get(name.name.lower())
        first = node.parts[0]
        if pseudo is None or not self._is_in_place(node.parts):
            return
        select = node.find_ancestor(exp.Select)
        sources = _sources(select) if select is not None else []
        called = node.table
        table = None
        for each in sources:
            use = self._by_node.get(id(each))
            if not called or (use is not None and use.called.lower() == called.lower()):
                table = use
                break
        qualifier = f"{quote(called)}." if called else ""
        if not called and len(sources) > 1 and table is not None and pseudo is Pseudo.ROWTIME:
            qualifier = f"{quote(table.called)}."
        window = _window_of(select) if select is not None and pseudo is not Pseudo.ROWTIME else None
        is_chosen = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        edit = TextEdit(first.meta["start"], name.meta["end"] + 1, "")
        alias = name.name if is_chosen else None
        self._found[edit] = PseudoUse(pseudo, table, qualifier, window, alias)

    def _add_metadata(self, node: exp.Column) -> None:
        """Note which tables a column of records may be of: `_offset`, `o._offset`, `_headers.key`.

        Without a qualifier that may be several, and Spark says so.
        """
        first, *others = [part.name.lower() for part in node.parts]
        above = node.find_ancestor(exp.Select)
        while above is not None:
            tables = self._tables(above)
            named = [use for use in tables if use.called.lower() == first]
            if named and others and others[0] in _METADATA:
                self.metadata |= {(use, _METADATA[others[0]]) for use in named}
                return
            if not named and tables and first in _METADATA:
                self.metadata |= {(use, _METADATA[first]) for use in tables}
                return
            above = above.find_ancestor(exp.Select)

    def _add_star(self, node: exp.Star) -> None:
        select = node.find_ancestor(exp.Select)
        if isinstance(node.parent, exp.Count) or select is None or "start" not in node.meta:
            return
        tables = self._tables(select, are_seen=True)
        if isinstance(node.parent, exp.Column):
            called = node.parent.table.lower()
            tables = [use for use in tables if use.called.lower() == called]
        start, end = node.meta["start"], node.meta["end"] + 1
        if not tables or self._text[start:end] != "*":
            return
        listed = _LEFT_OUT.match(self._text, end) if node.args.get("except_") else None
        place = TextEdit(start, end, "")
        if listed is not None:
            place = TextEdit(listed.end(), listed.end(), "")
        self._found[place] = StarUse(tuple(tables), is_listed=listed is not None)

    def _tables(self, select: exp.Select, *, are_seen: bool = False) -> list[TableUse]:
        """Return the tables in the FROM of a SELECT, or those whose columns it gives."""
        sources = _sources(select)
        if are_seen:
            unseen = {
                id(join.this) for join in select.args.get("joins") or () if join.kind in _LEFT_ONLY
            }
            sources = [each for each in sources if id(each) not in unseen]
        # What is turned round by PIVOT has no row that is of one record.
        uses = (self._by_node.get(id(each)) for each in sources if not each.args.get("pivots"))
        return [use for use in uses if use is not None]


def _sample_end(text: str, start: int) -> int:
    """Return where the `TABLESAMPLE (...) REPEATABLE (...)` ends that follows `start`."""
    (tokens,) = split(text)
    behind = [token for token in tokens if token.start >= start]
    end, depth = start, behind[0].depth
    for token, following in zip(behind, [*behind[1:], None], strict=True):
        if token.text == ")" and token.depth == depth:
            end = token.end
            if following is None or following.word != "REPEATABLE":
                break
    return end


def _is_elsewhere(node: exp.Table) -> bool:
    """Return whether it is no topic: in a hint, or the name of a WITH around it."""
    if node.find_ancestor(exp.Hint):
        return True
    if node.args.get("db"):
        return False
    above: exp.Expr | None = node
    inside: exp.Expr | None = None
    while above is not None:
        if isinstance(above, exp.CTE):
            inside = above
        elif isinstance(above, exp.Query):
            clause = above.args.get("with_")
            is_recursive = clause is not None and clause.args.get("recursive")
            for cte in above.ctes:
                # `WITH a AS (SELECT * FROM a)` reads the topic: a name is known behind it.
                if cte is inside and not is_recursive:
                    break
                if cte.alias.lower() == node.name.lower():
                    return True
        above = above.parent
    return False


def _sources(select: exp.Select) -> list[exp.Expr]:
    origin = select.args.get("from_") or select.args.get("from")
    joined = [join.this for join in select.args.get("joins") or []]
    return [*([origin.this] if origin is not None else []), *joined]


def _window_of(select: exp.Select) -> str | None:
    group = select.args.get("group")
    for each in group.expressions if group is not None else []:
        name = each.name if isinstance(each, exp.Anonymous) else each.key
        if name.lower() in ("window", "session_window"):
            return str(name.lower())
    return None
