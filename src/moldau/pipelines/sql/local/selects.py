"""Queries from Spark's SQL to DuckDB's: what stands where, and which names it has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.as_of import read_as_of
from moldau.pipelines.sql.local.casts import cast, guard_sign
from moldau.pipelines.sql.local.expressions import Expressions, column_names
from moldau.pipelines.sql.local.joins import join_source
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.output_names import output_name
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.scopes import FromSource, NamedColumn, Scope, Sql, column
from moldau.pipelines.sql.local.types import SparkType, common_type, quoted
from moldau.pipelines.sql.local.window_specs import order_text

FindRelation = Callable[[str, AsOf | None, str], FromSource]
"""Returns what a name in FROM is, as it was; its columns are those of the alias that is given."""


@dataclass(frozen=True, slots=True)
class DuckQuery:
    """A query in DuckDB's SQL: its columns are c0, c1 and so on, whatever their names are."""

    text: str
    names: tuple[str, ...]
    types: tuple[SparkType, ...]

    def renamed(self, alias: str, names: Sequence[str]) -> "DuckQuery":
        """Return it with other names for its columns."""
        if len(names) != len(self.names):
            raise QueryError(f"{alias} has {len(self.names)} columns, not {len(names)}")
        return DuckQuery(self.text, tuple(names), self.types)

    def source(self, alias: str, names: Sequence[str] = ()) -> FromSource:
        """Return it as it is seen in a FROM."""
        seen = self.renamed(alias, names) if names else self
        columns = [
            NamedColumn(name, column(alias, f"c{at}", its_type))
            for at, (name, its_type) in enumerate(zip(seen.names, seen.types, strict=True))
        ]
        return FromSource(alias, columns)


@dataclass(frozen=True, slots=True)
class _Tail:
    """What stands behind a query, and behind several in parentheses."""

    order: ParsedNode | None
    limit: ParsedNode | None
    offset: ParsedNode | None

    @staticmethod
    def of(node: ParsedNode) -> "_Tail":
        """Take the clauses of a query."""
        return _Tail(node.take("order"), node.take("limit"), node.take("offset"))


class Queries:
    """Translates a query and those inside it."""

    def __init__(self, find_relation: FindRelation, now: datetime) -> None:
        self._find_relation = find_relation
        self._ctes: dict[str, tuple[str, DuckQuery]] = {}
        self._expressions = Expressions(self._inner, now)

    def translate(self, statement: exp.Expr) -> DuckQuery:
        """Return a query of DuckDB's with the rows that Spark gives."""
        node = ParsedNode(statement)
        made = self._query(node)
        node.check()
        return made

    def _query(self, node: ParsedNode, outer: Scope | None = None) -> DuckQuery:
        if node.kind is exp.Select:
            translate = self._select
        elif node.kind is exp.Subquery:
            translate = self._parenthesized
        elif node.kind in (exp.Union, exp.Intersect, exp.Except):
            translate = self._set_operation
        else:
            raise GoesToSpark(f"{node.key} is Spark's to compute")
        kept = dict(self._ctes)
        try:
            prefix = self._with(node)
            made = translate(node, outer)
            return DuckQuery(prefix + made.text, made.names, made.types)
        finally:
            self._ctes = kept

    def _inner(self, node: ParsedNode, scope: Scope) -> tuple[str, Sequence[SparkType]]:
        made = self._query(node, scope)
        return made.text, made.types

    def _parenthesized(self, node: ParsedNode, outer: Scope | None) -> DuckQuery:
        inner, tail = self._query(node.get("this"), outer), _Tail.of(node)
        end = self._tail(tail, Scope(), inner, [])
        return DuckQuery(f"({inner.text}){end}" if end else inner.text, inner.names, inner.types)

    def _with(self, node: ParsedNode) -> str:
        clause = node.take("with_")
        if clause is None:
            return ""
        queries = clause.take_list("expressions")
        clause.check_own()
        parts: list[str] = []
        for cte in queries:
            inner = self._query(cte.get("this"))
            name, names = _alias(cte)
            if names:
                inner = inner.renamed(name, names)
            known = f"q{len(self._ctes)}_{len(parts)}"
            parts.append(f"{known} AS ({inner.text})")
            self._ctes[name.lower()] = known, inner
        return f"WITH {', '.join(parts)} "

    # One SELECT.

    def _select(self, node: ParsedNode, outer: Scope | None) -> DuckQuery:
        source, joins, where = node.take("from_"), node.take_list("joins"), node.take("where")
        chosen_nodes, distinct = node.take_list("expressions"), node.take("distinct")
        group, having, tail = node.take("group"), node.take("having"), _Tail.of(node)
        node.check_own()
        scope = Scope(outer=outer)
        if source is None and joins:
            raise GoesToSpark("a join without FROM")
        relations = "" if source is None else self._from(source.get("this"), joins, scope)
        # It sees no aliases.
        conditions = [] if where is None else [self._condition(where, scope)]
        keys = [] if group is None else group.take_list("expressions")
        self._name_windows(keys, scope)
        items = self._items(chosen_nodes, scope)
        groups = self._groups(keys, scope, items)
        if having is not None:
            self._require_clear(having.get("this"), scope, items)
            groups += f" HAVING {self._condition(having, scope)}"
        names, types = (each.name for each in items), (each.sql.type for each in items)
        made = DuckQuery("", tuple(names), tuple(types))
        end = self._tail(tail, scope, made, items)
        conditions += scope.filters
        filters = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        words = "SELECT" if distinct is None else "SELECT DISTINCT"
        columns = (each.sql.text if distinct is None else guard_sign(each.sql) for each in items)
        chosen = ", ".join(f'{each} AS "c{at}"' for at, each in enumerate(columns))
        text = f"{words} {chosen}{relations}{filters}{groups}{end}"
        return DuckQuery(text, made.names, made.types)

    def _condition(self, clause: ParsedNode, scope: Scope) -> str:
        return self._expressions.condition(clause.get("this"), scope)

    def _from(self, first: ParsedNode, joins: Sequence[ParsedNode], scope: Scope) -> str:
        text, source = self._source(first, scope)
        scope.sources.append(source)
        for each in joins:
            its_text, its_source = self._source(each.get("this"), scope)
            text += join_source(
                each, its_text, its_source, scope,
                lambda condition: self._expressions.condition(condition, scope),
            )  # fmt: skip
        return f" FROM {text}"

    def _source(self, node: ParsedNode, scope: Scope) -> tuple[str, FromSource]:
        alias, names = _alias(node)
        if node.kind is exp.Subquery:
            query = node.get("this")
            node.check_own()
            _require_new(alias, scope)
            inner = self._query(query)
            alias = alias or f"_{len(scope.sources)}"
            return f"({inner.text}) AS {quoted(alias)}", inner.source(alias, names)
        if node.kind is not exp.Table or node.kind_of("this") is not exp.Identifier:
            raise GoesToSpark(f"FROM {node.words}")
        parts = [each for name in ("catalog", "db", "this") if (each := node.take(name))]
        name = ".".join(each.take_name() for each in parts)
        as_of = read_as_of(node)
        node.check_own()
        alias = alias or parts[-1].take_name()
        _require_new(alias, scope)
        known = self._ctes.get(name.lower()) if len(parts) == 1 else None
        if known is not None:
            if as_of is not None:
                raise QueryError(f"{name} is a query: it has no AS OF")
            return f"{known[0]} AS {quoted(alias)}", known[1].source(alias, names)
        if names:
            raise GoesToSpark("columns that are renamed behind a relation")
        source = self._find_relation(name, as_of, alias)
        return f"{source.table} AS {quoted(alias)}", source

    def _name_windows(self, keys: Sequence[ParsedNode], scope: Scope) -> None:
        """Let `window` stand for the window that rows are grouped by."""
        for each in keys:
            if each.kind is exp.Anonymous and each.take_word("this").lower() == "window":
                scope.aliases["window"] = self._expressions.translate(each, scope)

    def _items(self, nodes: Sequence[ParsedNode], scope: Scope) -> list[NamedColumn]:
        items: list[NamedColumn] = []
        for each in nodes:
            if each.kind is exp.Star:
                items += scope.star(None)
            elif each.kind is exp.Column and each.kind_of("this") is exp.Star:
                each.get("this")
                items += scope.star(each.get("table").take_name())
            elif each.kind is exp.Alias:
                name = each.get("alias").take_name()
                made = self._expressions.translate(each.get("this"), scope)
                items.append(NamedColumn(name, made))
                # Spark lets later expressions use it, where no column has that name.
                scope.aliases[name.lower()] = made
            else:
                items.append(self._unnamed(each, scope))
        return items

    def _unnamed(self, node: ParsedNode, scope: Scope) -> NamedColumn:
        """Return an item without an alias, by the name that Spark gives it."""
        scope.is_lent = False
        made = self._expressions.translate(node, scope)
        name = output_name(node, scope, lambda each: self._expressions.translate(each, scope).type)
        return NamedColumn(name, made)

    def _groups(
        self, keys: Sequence[ParsedNode], scope: Scope, items: Sequence[NamedColumn]
    ) -> str:
        texts = []
        for each in keys:
            place = each.take_place()
            if place is not None:
                _require_place(place, len(items))
                key = items[place - 1].sql
            else:
                key = self._expressions.translate(each, scope)
            if key.type.name in ("float", "double"):
                scope.filters.append(guard_sign(key, "true"))
            texts.append(key.text)
        return f" GROUP BY {', '.join(texts)}" if texts else ""

    # What follows: order and limit.

    def _tail(
        self, tail: "_Tail", scope: Scope, made: DuckQuery, items: Sequence[NamedColumn]
    ) -> str:
        text = ""
        if tail.order is not None:

            def translate(each: ParsedNode) -> str:
                return self._ordered(each, scope, made, items)

            texts = [order_text(each, translate) for each in tail.order.take_list("expressions")]
            text += f" ORDER BY {', '.join(texts)}"
        for word, clause in (("LIMIT", tail.limit), ("OFFSET", tail.offset)):
            if clause is not None:
                rows = clause.get("expression").take_whole()
                if rows is None:
                    raise GoesToSpark(f"{word} {clause.get('expression').words}")
                text += f" {word} {rows}"
        return text

    def _ordered(
        self, node: ParsedNode, scope: Scope, made: DuckQuery, items: Sequence[NamedColumn]
    ) -> str:
        place = node.take_place()
        if place is not None:
            _require_place(place, len(made.names))
            return str(place)
        if node.kind is exp.Column and len(names := column_names(node)) == 1:
            # A column of the result, before one of what is selected from.
            wanted = names[0].lower()
            places = [at for at, name in enumerate(made.names) if name.lower() == wanted]
            if len(places) == 1:
                return str(places[0] + 1)
        if not items:
            raise GoesToSpark(f"ORDER BY {node.words} behind a set operation")
        self._require_clear(node, scope, items)
        found = self._expressions.translate(node, scope).text
        texts = [each.sql.text for each in items]
        return str(texts.index(found) + 1) if found in texts else found

    def _require_clear(self, node: ParsedNode, scope: Scope, items: Sequence[NamedColumn]) -> None:
        """Leave to Spark which one is meant: a column, or what was made of it by the same name."""
        known = {each.name.lower(): each.sql.text for each in items}
        for each in node.find_all(exp.Column):
            names = column_names(each)
            if len(names) > 1 or names[0].lower() not in known:
                continue
            if self._expressions.translate(each, scope).text != known[names[0].lower()]:
                raise GoesToSpark(f"{names[0]} is a column, and the name of another one")

    # Several SELECTs.

    def _set_operation(self, node: ParsedNode, outer: Scope | None) -> DuckQuery:
        operator, tail = node.key.upper(), _Tail.of(node)
        if node.take_flag("distinct") is False:
            operator += " ALL"
        nodes = [node.get(each) for each in ("this", "expression")]
        node.check_own()
        sides = [self._query(each, outer) for each in nodes]
        if len(sides[0].types) != len(sides[1].types):
            raise QueryError(
                f"{operator} of {len(sides[0].types)} and {len(sides[1].types)} columns"
            )
        types = []
        for one, other in zip(sides[0].types, sides[1].types, strict=True):
            common = common_type(one, other)
            if common is None:
                raise GoesToSpark(f"{operator} of {one} and {other}")
            types.append(common)
        is_compared = operator != "UNION ALL"
        texts = [_as_types(each, types, is_compared=is_compared) for each in sides]
        made = DuckQuery("", sides[0].names, tuple(types))
        end = self._tail(tail, Scope(), made, [])
        text = f"SELECT * FROM ({texts[0]} {operator} {texts[1]}){end}"
        return DuckQuery(text, made.names, made.types)


def _as_types(query: DuckQuery, types: Sequence[SparkType], *, is_compared: bool) -> str:
    columns = [
        cast(Sql(f"c{at}", own), wanted)
        for at, (own, wanted) in enumerate(zip(query.types, types, strict=True))
    ]
    texts = (guard_sign(each) if is_compared else each.text for each in columns)
    chosen = ", ".join(f'{each} AS "c{at}"' for at, each in enumerate(texts))
    return f"SELECT {chosen} FROM ({query.text})"


def _alias(node: ParsedNode) -> tuple[str, list[str]]:
    """Return what stands behind AS, nothing if it is not said, and the columns' names there."""
    alias = node.take("alias")
    if alias is None:
        return "", []
    name = alias.take("this")
    columns = [each.take_name() for each in alias.take_list("columns")]
    return "" if name is None else name.take_name(), columns


def _require_new(alias: str, scope: Scope) -> None:
    if any(each.alias.lower() == alias.lower() for each in scope.sources):
        raise GoesToSpark(f"two relations are called {alias}: give one of them another name")


def _require_place(place: int, count: int) -> None:
    if not 1 <= place <= count:
        raise QueryError(f"there is no column {place}: the result has {count}")
