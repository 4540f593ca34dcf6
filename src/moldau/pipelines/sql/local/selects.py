"""Queries from Spark's SQL to DuckDB's: what stands where, and which names it has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.local.casts import cast
from moldau.pipelines.sql.local.expressions import Expressions
from moldau.pipelines.sql.local.joins import join_source
from moldau.pipelines.sql.local.output_names import output_name
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.scopes import FromSource, NamedColumn, Scope, Sql, column
from moldau.pipelines.sql.local.types import SparkType, common_type, quoted
from moldau.pipelines.sql.local.window_specs import order_text

FindRelation = Callable[[exp.Table, str], FromSource]
"""Returns what a table in FROM is; its columns are those of the alias that it is given."""

_SELECT: Final = {
    "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit",
    "offset", "with_",
}  # fmt: skip
_SET_OPERATION: Final = {
    "this", "expression", "distinct", "order", "limit", "offset", "with_",
}  # fmt: skip
_TABLE: Final = {"this", "alias", "version"}


@dataclass(frozen=True, slots=True)
class DuckQuery:
    """A query in DuckDB's SQL: its columns are c0, c1 and so on, whatever their names are."""

    text: str
    names: tuple[str, ...]
    types: tuple[SparkType, ...]

    def source(self, alias: str, names: Sequence[str] = ()) -> FromSource:
        """Return it as it is seen in a FROM."""
        if names and len(names) != len(self.names):
            raise QueryError(f"{alias} has {len(self.names)} columns, not {len(names)}")
        columns = [
            NamedColumn(name, column(alias, f"c{at}", its_type))
            for at, (name, its_type) in enumerate(zip(names or self.names, self.types, strict=True))
        ]
        return FromSource(alias, columns)


class Queries:
    """Translates a query and those inside it."""

    def __init__(self, find_relation: FindRelation, now: datetime) -> None:
        self._find_relation = find_relation
        self._ctes: dict[str, tuple[str, DuckQuery]] = {}
        self._expressions = Expressions(self._inner, now)

    def translate(self, node: exp.Expression, outer: Scope | None = None) -> DuckQuery:
        """Return a query of DuckDB's with the rows that Spark gives."""
        kept = dict(self._ctes)
        try:
            prefix = self._with(node)
            match node:
                case exp.Select():
                    made = self._select(node, outer)
                case exp.Union() | exp.Intersect() | exp.Except():
                    made = self._set_operation(node, outer)
                case exp.Subquery():
                    made = self._parenthesized(node, outer)
                case _:
                    raise GoesToSpark(f"{node.key} is Spark's to compute")
            return DuckQuery(prefix + made.text, made.names, made.types)
        finally:
            self._ctes = kept

    def _inner(self, node: exp.Expression, scope: Scope) -> tuple[str, Sequence[SparkType]]:
        made = self.translate(node, scope)
        return made.text, made.types

    def _parenthesized(self, node: exp.Subquery, outer: Scope | None) -> DuckQuery:
        _require(node, {"this", "order", "limit", "offset", "with_", "alias"})
        inner = self.translate(node.this, outer)
        tail = self._tail(node, Scope(), inner, [])
        return DuckQuery(f"({inner.text}){tail}" if tail else inner.text, inner.names, inner.types)

    def _with(self, node: exp.Expression) -> str:
        clause = node.args.get("with_")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise GoesToSpark("a recursive query")
        parts: list[str] = []
        for cte in clause.expressions:
            inner = self.translate(cte.this)
            table = cte.args["alias"]
            names = [each.name for each in table.columns]
            if names:
                inner = DuckQuery(inner.text, tuple(names), inner.types)
            known = f"q{len(self._ctes)}_{len(parts)}"
            parts.append(f"{known} AS ({inner.text})")
            self._ctes[cte.alias.lower()] = known, inner
        return f"WITH {', '.join(parts)} "

    # One SELECT.

    def _select(self, node: exp.Select, outer: Scope | None) -> DuckQuery:
        _require(node, _SELECT)
        scope = Scope(outer=outer)
        relations = self._from(node, scope)
        where = []
        if node.args.get("where") is not None:
            # It sees no aliases.
            where.append(self._expressions.condition(node.args["where"].this, scope))
        self._name_windows(node, scope)
        items = self._items(node, scope)
        groups = self._groups(node, scope, items)
        having = ""
        if node.args.get("having") is not None:
            self._require_clear(node.args["having"].this, scope, items)
            having = f" HAVING {self._expressions.condition(node.args['having'].this, scope)}"
        names = tuple(each.name for each in items)
        made = DuckQuery("", names, tuple(each.sql.type for each in items))
        tail = self._tail(node, scope, made, items)
        where += scope.filters
        distinct = "DISTINCT " if node.args.get("distinct") is not None else ""
        if distinct and node.args["distinct"].args.get("on"):
            raise GoesToSpark("DISTINCT ON")
        chosen = ", ".join(f'{each.sql.text} AS "c{at}"' for at, each in enumerate(items))
        conditions = f" WHERE {' AND '.join(where)}" if where else ""
        text = f"SELECT {distinct}{chosen}{relations}{conditions}{groups}{having}{tail}"
        return DuckQuery(text, made.names, made.types)

    def _from(self, node: exp.Select, scope: Scope) -> str:
        clause = node.args.get("from_")
        if clause is None:
            return ""
        text, source = self._source(clause.this, scope)
        scope.sources.append(source)
        for each in node.args.get("joins") or ():
            its_text, its_source = self._source(each.this, scope)
            text += join_source(
                each, its_text, its_source, scope,
                lambda condition: self._expressions.condition(condition, scope),
            )  # fmt: skip
        return f" FROM {text}"

    def _source(self, node: exp.Expression, scope: Scope) -> tuple[str, FromSource]:
        alias = node.alias_or_name
        if any(each.alias.lower() == alias.lower() for each in scope.sources):
            raise QueryError(f"two relations are called {alias}: give one of them another name")
        names = [each.name for each in (node.args.get("alias") or exp.TableAlias()).columns]
        match node:
            case exp.Subquery():
                inner = self.translate(node.this)
                alias = alias or f"_{len(scope.sources)}"
                return f"({inner.text}) AS {quoted(alias)}", inner.source(alias, names)
            case exp.Table() if isinstance(node.this, exp.Identifier):
                _require(node, _TABLE)
                known = self._ctes.get(node.name.lower())
                if known is not None:
                    if node.args.get("version") is not None:
                        raise QueryError(f"{node.name} is a query: it has no AS OF")
                    return f"{known[0]} AS {quoted(alias)}", known[1].source(alias, names)
                if names:
                    raise GoesToSpark("columns that are renamed behind a relation")
                source = self._find_relation(node, alias)
                return f"{source.table} AS {quoted(alias)}", source
            case _:
                raise GoesToSpark(f"FROM {node.sql(dialect='spark')}")

    def _name_windows(self, node: exp.Select, scope: Scope) -> None:
        """Let `window` stand for the window that rows are grouped by."""
        for each in (node.args.get("group") or exp.Group()).expressions:
            if isinstance(each, exp.Anonymous) and str(each.this).lower() == "window":
                scope.aliases["window"] = self._expressions.translate(each, scope)

    def _items(self, node: exp.Select, scope: Scope) -> list[NamedColumn]:
        items: list[NamedColumn] = []
        for each in node.expressions:
            if isinstance(each, exp.Star) or (
                isinstance(each, exp.Column) and isinstance(each.this, exp.Star)
            ):
                star = each if isinstance(each, exp.Star) else each.this
                _require(star, set())
                alias = each.table if isinstance(each, exp.Column) else None
                items += scope.star(alias or None)
                continue
            made = self._expressions.translate(each.unalias(), scope)
            items.append(NamedColumn(output_name(each), made))
            if isinstance(each, exp.Alias):
                # Spark lets later expressions use it, where no column has that name.
                scope.aliases[each.alias.lower()] = made
        return items

    def _groups(self, node: exp.Select, scope: Scope, items: Sequence[NamedColumn]) -> str:
        group = node.args.get("group")
        if group is None:
            return ""
        _require(group, {"expressions"})
        texts = []
        for each in group.expressions:
            if isinstance(each, exp.Literal) and not each.is_string:
                texts.append(_at(items, each).sql.text)
            else:
                texts.append(self._expressions.translate(each, scope).text)
        return f" GROUP BY {', '.join(texts)}"

    # What follows: order and limit.

    def _tail(
        self, node: exp.Expression, scope: Scope, made: DuckQuery, items: Sequence[NamedColumn]
    ) -> str:
        text = ""
        order = node.args.get("order")
        if order is not None:
            _require(order, {"expressions"})

            def translate(each: exp.Expression) -> str:
                return self._ordered(each, scope, made, items)

            texts = [order_text(each, translate) for each in order.expressions]
            text += f" ORDER BY {', '.join(texts)}"
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            if clause is not None:
                number = clause.expression
                if not isinstance(number, exp.Literal) or not number.name.isdigit():
                    raise GoesToSpark(f"{name.upper()} {number.sql(dialect='spark')}")
                text += f" {name.upper()} {number.name}"
        return text

    def _ordered(
        self, node: exp.Expression, scope: Scope, made: DuckQuery, items: Sequence[NamedColumn]
    ) -> str:
        if isinstance(node, exp.Literal) and not node.is_string:
            return str(_place(made, node) + 1)
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            # A column of the result, before one of what is selected from.
            places = [at for at, name in enumerate(made.names) if name.lower() == node.name.lower()]
            if len(places) == 1:
                return str(places[0] + 1)
        if not items:
            raise GoesToSpark(f"ORDER BY {node.sql(dialect='spark')} behind a set operation")
        self._require_clear(node, scope, items)
        found = self._expressions.translate(node, scope).text
        texts = [each.sql.text for each in items]
        return str(texts.index(found) + 1) if found in texts else found

    def _require_clear(
        self, node: exp.Expression, scope: Scope, items: Sequence[NamedColumn]
    ) -> None:
        """Leave to Spark which one is meant: a column, or what was made of it by the same name."""
        known = {each.name.lower(): each.sql.text for each in items}
        for each in node.find_all(exp.Column):
            name = each.name.lower()
            if len(each.parts) > 1 or name not in known:
                continue
            if self._expressions.translate(each, scope).text != known[name]:
                raise GoesToSpark(f"{each.name} is a column, and the name of another one")

    # Several SELECTs.

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> DuckQuery:
        _require(node, _SET_OPERATION)
        sides = [self.translate(each, outer) for each in (node.this, node.expression)]
        if len(sides[0].types) != len(sides[1].types):
            raise QueryError(
                f"{node.key.upper()} of {len(sides[0].types)} and {len(sides[1].types)} columns"
            )
        types = []
        for one, other in zip(sides[0].types, sides[1].types, strict=True):
            common = common_type(one, other)
            if common is None:
                raise GoesToSpark(f"{node.key.upper()} of {one} and {other}")
            types.append(common)
        texts = [_as_types(each, types) for each in sides]
        operator = node.key.upper() + ("" if node.args.get("distinct", True) else " ALL")
        made = DuckQuery("", sides[0].names, tuple(types))
        tail = self._tail(node, Scope(), made, [])
        text = f"SELECT * FROM ({texts[0]} {operator} {texts[1]}){tail}"
        return DuckQuery(text, made.names, made.types)


def _as_types(query: DuckQuery, types: Sequence[SparkType]) -> str:
    columns = (
        f'{cast(Sql(f"c{at}", own), wanted).text} AS "c{at}"'
        for at, (own, wanted) in enumerate(zip(query.types, types, strict=True))
    )
    return f"SELECT {', '.join(columns)} FROM ({query.text})"


def _at(items: Sequence[NamedColumn], number: exp.Literal) -> NamedColumn:
    place = int(number.name)
    if not 1 <= place <= len(items):
        raise QueryError(f"there is no column {place}: the result has {len(items)}")
    return items[place - 1]


def _place(made: DuckQuery, number: exp.Literal) -> int:
    place = int(number.name)
    if not 1 <= place <= len(made.names):
        raise QueryError(f"there is no column {place}: the result has {len(made.names)}")
    return place - 1


def _require(node: exp.Expression, known: set[str]) -> None:
    """Leave to Spark what has clauses that are not known here."""
    strange = sorted({key for key, value in node.args.items() if value} - known)
    if strange:
        raise GoesToSpark(f"{strange[0].strip('_').replace('_', ' ')} in {node.key}")
