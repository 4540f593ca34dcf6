"""Statements over one relation, translated without a broker."""

from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.scopes import FromSource
from moldau.pipelines.sql.local.selects import DuckQuery, Queries
from moldau.pipelines.sql.local.wanted import WantedRelation
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

COLUMNS: Final = {
    "n": "int", "i": "int", "l": "bigint", "dc": "decimal(10,2)", "s": "string", "t": "string",
    "b": "boolean", "ts": "timestamp", "dt": "date", "a": "array<int>", "m": "map<string,double>",
    "st": "struct<x: int, y: struct<z: string>>",
}  # fmt: skip
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def translate_tree(tree: exp.Expr) -> DuckQuery:
    """Return the engine's query for a parsed statement; every relation has the same columns."""
    return Queries(_find, NOW).translate(tree)


def _find(name: str, as_of: AsOf | None, alias: str) -> FromSource:
    columns = tuple(Column(each, its_type) for each, its_type in COLUMNS.items())
    relation = Relation(name, RelationKind.STREAM, name, columns)
    return WantedRelation(relation, as_of, f"{name} as of {as_of}").source(alias)
