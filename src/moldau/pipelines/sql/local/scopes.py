"""Names in a query, and what they stand for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.pipelines.sql.language.names import no_column, no_field
from moldau.pipelines.sql.local.refusals import GoesToSpark, NoColumnError, QueryError
from moldau.pipelines.sql.local.types import SparkType, quoted, text

MARK: Final = "\x00"
"""Where an aggregate's FILTER and OVER go in its text."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression in DuckDB's SQL, and the type that Spark gives it."""

    text: str
    type: SparkType
    literal: str | None = None
    """The value, if it is written in the query."""


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of a source or of a result, by the name that users know."""

    name: str
    sql: Sql


@dataclass(slots=True)
class FromSource:
    """What stands in a FROM: a relation, or a query in parentheses."""

    alias: str
    columns: Sequence[NamedColumn]
    hidden: Sequence[NamedColumn] = ()
    """Columns that `*` does not have."""
    table: str = ""
    """Of a relation: what DuckDB calls it."""
    seen: Callable[[str], None] = lambda _: None
    """Is told which columns are asked for."""

    def find(self, name: str) -> Sql | None:
        """Return a column; `QueryError` if there are two of that name."""
        found = [each for each in (*self.columns, *self.hidden) if _equal(each.name, name)]
        if len(found) > 1:
            raise QueryError(f"column {name} of {self.alias} is ambiguous")
        if not found:
            return None
        self.seen(found[0].name)
        return found[0].sql


@dataclass(frozen=True, slots=True)
class FoundName:
    """What a name stands for."""

    sql: Sql
    names: Sequence[str]
    """The name without the relation's before it: the column, and fields inside it."""
    is_alias: bool = False


@dataclass(slots=True)
class Scope:
    """The names that an expression can use."""

    sources: list[FromSource] = field(default_factory=list)
    outer: "Scope | None" = None
    aliases: dict[str, Sql] = field(default_factory=dict)
    """Of the SELECT list, and of windows in GROUP BY: for what no source has."""
    merged: dict[str, Sql] = field(default_factory=dict)
    """The columns that USING has made one of."""
    filters: list[str] = field(default_factory=list)
    """Conditions that functions bring with them."""
    is_lent: bool = False
    """Whether a query inside has used a name of this one since this was last looked at."""

    def resolve(self, parts: Sequence[str]) -> Sql:
        """Return what a name with its qualifiers stands for."""
        found = self.find(parts)
        sql = found.sql
        for name in found.names[1:]:
            sql = field_of(sql, name)
        return sql

    def find(self, parts: Sequence[str]) -> "FoundName":
        """Return the column or the alias that a name begins with."""
        found = self._find_here(parts)
        if found is None and self.outer is not None:
            self.outer.is_lent = True
            return self.outer.find(parts)
        if found is None:
            known = [each.name for source in self.sources for each in source.columns]
            raise NoColumnError(no_column(".".join(parts), known))
        return found

    def _find_here(self, parts: Sequence[str]) -> "FoundName | None":
        if len(parts) > 1:
            for source in self.sources:
                if _equal(source.alias, parts[0]) and (found := source.find(parts[1])) is not None:
                    return FoundName(found, parts[1:])
        name = parts[0].lower()
        candidates = [self.merged[name]] if name in self.merged else []
        if not candidates:
            candidates = [sql for each in self.sources if (sql := each.find(parts[0])) is not None]
        if len(candidates) > 1:
            raise QueryError(f"column {parts[0]} is ambiguous: write which relation's")
        if candidates:
            return FoundName(candidates[0], parts)
        if name in self.aliases:
            return FoundName(self.aliases[name], parts, is_alias=True)
        return None

    def star(self, alias: str | None) -> list[NamedColumn]:
        """Return the columns of `*`, or of `alias.*`."""
        sources = [each for each in self.sources if alias is None or _equal(each.alias, alias)]
        if not sources:
            what = "*" if alias is None else f"{alias}.*"
            raise QueryError(f"{what}: there is no such relation in FROM")
        columns: list[NamedColumn] = []
        done: set[str] = set()
        for source in sources:
            for each in source.columns:
                name = each.name.lower()
                if alias is None and name in self.merged:
                    if name not in done:
                        # USING's columns come first, once.
                        columns.insert(len(done), NamedColumn(each.name, self.merged[name]))
                        done.add(name)
                    continue
                source.seen(each.name)
                columns.append(each)
        return columns


def field_of(sql: Sql, name: str) -> Sql:
    """Return a struct's field."""
    if sql.type.name != "struct":
        raise GoesToSpark(f"a field {name} of {sql.type} is Spark's to find")
    for known, part in sql.type.fields:
        if _equal(known, name):
            return Sql(f"struct_extract({sql.text}, {text(known)})", part)
    raise NoColumnError(no_field(name, sql.type.names))


def column(alias: str, name: str, its_type: SparkType) -> Sql:
    """Return a column of a relation in DuckDB."""
    return Sql(f"{quoted(alias)}.{quoted(name)}", its_type)


def _equal(one: str, other: str) -> bool:
    return one.lower() == other.lower()
