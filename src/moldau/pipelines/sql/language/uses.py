"""Which tables and pseudo columns a query uses, and where they are in its text."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.language.column_types import quote
from moldau.pipelines.sql.language.queries import AsOf, Pseudo, PseudoUse, TableUse
from moldau.pipelines.sql.language.rewriting import Rewritten, TextEdit

_PSEUDO: Final = {each.value: each for each in Pseudo}


class Uses:
    """The tables and the pseudo columns of a query, by where they are in its text."""

    def __init__(self, query: exp.Query, rewritten: Rewritten, times: Mapping[int, AsOf]) -> None:
        self._found: dict[TextEdit, TableUse | PseudoUse] = {}
        self._text = rewritten.text
        self.ends: set[int] = set()
        """Where names of tables end in the original text."""
        self._by_node: dict[int, TableUse] = {}
        for node in query.find_all(exp.Table):
            parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
            if not parts or _is_elsewhere(node) or not self._is_in_place(parts):
                continue
            start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
            # The last character's place: that behind it may be behind something that was cut out.
            original_end = rewritten.origin(end - 1) + 1
            self.ends.add(original_end)
            names = tuple(part.name for part in parts)
            use = TableUse(names, node.alias or None, times.get(original_end))
            self._by_node[id(node)] = use
            self._found[TextEdit(start, end, "")] = use
        for column in query.find_all(exp.Column):
            self._add_pseudo(column)

    @property
    def found(self) -> list[tuple[TextEdit, TableUse | PseudoUse]]:
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
