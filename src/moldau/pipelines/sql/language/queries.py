"""Queries: Spark's SQL as it was written, with places for what only its runner knows.

The text that goes to Spark is the user's own, and not sqlglot's rendering of what sqlglot has
understood: of 200 Spark expressions, a round trip turns some into others (`parse_json(a)` into
`a`, `percentile_cont` into `percentile_approx`, `to_char(a, '999')` into a cast). The expression
is for finding things in, and for engines that are not Spark.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from sqlglot import exp

from moldau.pipelines.sql.language.column_types import quote

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EmitWhen(StrEnum):
    """When a query without an end says something."""

    CHANGES = "changes"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class AsOfTime:
    """A topic as it was at a time: before the first record that is as late, or later."""

    at: datetime
    """Without a zone, it is one of UTC."""

    @property
    def ms(self) -> int:
        """Return it as records have it; no record is between this and the time itself."""
        return -((_EPOCH - self._zoned) // timedelta(milliseconds=1))

    @property
    def _zoned(self) -> datetime:
        return self.at if self.at.tzinfo is not None else self.at.replace(tzinfo=UTC)

    def __str__(self) -> str:
        return self._zoned.isoformat(" ")


@dataclass(frozen=True, slots=True)
class AsOfOffsets:
    """A topic as it was before these offsets; of partitions that are not named, nothing is."""

    offsets: tuple[tuple[int, int], ...]
    """Partition and offset, in the order of the partitions."""

    def __str__(self) -> str:
        return json.dumps({str(partition): offset for partition, offset in self.offsets})


AsOf = AsOfTime | AsOfOffsets


@dataclass(frozen=True, slots=True)
class TableUse:
    """A stream, a table or a topic in a query; the same one can be there twice."""

    parts: tuple[str, ...]
    """Of its name, without quotes: `shop.orders` has two."""
    alias: str | None = None
    as_of: AsOf | None = None
    is_sampled: bool = False
    """Whether TABLESAMPLE follows: an alias is only allowed behind it."""

    @property
    def name(self) -> str:
        """The name as topics have it."""
        return ".".join(self.parts)

    @property
    def called(self) -> str:
        """The name that columns are qualified with."""
        return self.alias or self.parts[-1]


class Pseudo(StrEnum):
    """Columns that ksqlDB has and Spark has not."""

    ROWTIME = "rowtime"
    WINDOWSTART = "windowstart"
    WINDOWEND = "windowend"


class Metadata(StrEnum):
    """What every record has beside its key and value; a relation may have such a column itself."""

    TOPIC = "_topic"
    PARTITION = "_partition"
    OFFSET = "_offset"
    TIMESTAMP = "_timestamp"
    HEADERS = "_headers"


@dataclass(frozen=True, slots=True)
class PseudoUse:
    """Such a column in a query."""

    column: Pseudo
    table: TableUse | None
    """That it belongs to; None where it is that of a subquery."""
    qualifier: str = ""
    """What is before it, such as `o.`."""
    window: str | None = None
    """The column with the window, if the query says so itself."""
    alias: str | None = None
    """What the result is called: a column `window.start` would be called `start`."""


@dataclass(frozen=True, slots=True)
class SampleEnd:
    """The end of TABLESAMPLE, where a table without an alias gets the one that it needs."""

    table: TableUse


@dataclass(frozen=True, slots=True)
class StarUse:
    """All columns, but not those of records that the query asks for by name."""

    tables: tuple[TableUse, ...]
    """Whose columns these are."""
    is_listed: bool = False
    """Whether the query itself leaves some out: this is where their names begin."""


@dataclass(frozen=True, slots=True)
class WithinUse:
    """Two streams that are joined WITHIN a time; the condition itself is in the text."""

    left: TableUse
    right: TableUse
    before: str
    """How much earlier than its counterpart the row of the right stream may be, as `1 hour`."""
    after: str
    """How much later it may be."""
    grace: str | None
    """How late rows of both may be, if the query says so."""
    outer: str
    """Whose rows are there without a counterpart, too: LEFT, RIGHT, FULL, or none's."""


class QueryNames:
    """What the runner of a query calls things; this one calls them what the user does."""

    def table(self, use: TableUse) -> str:
        """Return what a table is called, in quotes if need be."""
        return ".".join(quote(part) for part in use.parts)

    def rowtime(self, use: TableUse | None) -> str:
        """Return the column with the time of the rows of a table."""
        del use
        return "rowtime"

    def window(self, use: TableUse | None) -> str:
        """Return the column with the window of the rows of a table."""
        del use
        return "window"

    def hidden(self, use: TableUse) -> Sequence[str]:
        """Return the columns of a table that are not among all of them, with its name before."""
        del use
        return ()


AS_WRITTEN = QueryNames()


QueryPiece: TypeAlias = str | TableUse | SampleEnd | PseudoUse | StarUse


@dataclass(frozen=True, slots=True)
class Fragment:
    """An expression alone: as it is written, and understood."""

    text: str
    expression: exp.Expr = field(repr=False)


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A SELECT, without what Spark does not know."""

    pieces: tuple[QueryPiece, ...]
    """The text, with tables and pseudo columns to be named."""
    expression: exp.Query = field(repr=False)
    """For looking into; pseudo columns are plain columns there, and nothing is AS OF."""
    metadata: frozenset[tuple[TableUse, Metadata]] = frozenset()
    """What it may ask for of the records themselves."""
    within: tuple[WithinUse, ...] = ()
    """Its joins of two streams that ksqlDB's WITHIN bounds."""

    @property
    def tables(self) -> tuple[TableUse, ...]:
        """What is read, in the order of the text."""
        return tuple(each for each in self.pieces if isinstance(each, TableUse))

    def render(self, names: QueryNames = AS_WRITTEN) -> str:
        """Return the text for Spark."""
        return "".join(_rendered(each, names) for each in self.pieces)


def _rendered(piece: QueryPiece, names: QueryNames) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, StarUse):
        hidden = ", ".join(name for use in piece.tables for name in names.hidden(use))
        if piece.is_listed:
            return f"{hidden}, " if hidden else ""
        return f"* EXCEPT ({hidden})" if hidden else "*"
    if isinstance(piece, TableUse):
        name = names.table(piece)
        return name if piece.is_sampled else name + _missing_alias(piece, name)
    if isinstance(piece, SampleEnd):
        return _missing_alias(piece.table, names.table(piece.table))
    if piece.column is Pseudo.ROWTIME:
        text = piece.qualifier + names.rowtime(piece.table)
    else:
        window = piece.window or names.window(piece.table)
        text = f"{piece.qualifier}{window}.{piece.column.removeprefix('window')}"
    return text if piece.alias is None else f"{text} AS {piece.alias}"


def _missing_alias(use: TableUse, name: str) -> str:
    """Return the alias that a table called `name` needs: the user qualifies columns with it."""
    is_same = name == AS_WRITTEN.table(use) or use.alias is not None
    return "" if is_same else f" AS {quote(use.called)}"
