"""Answers of both engines to the same statement, and what is different in them."""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.answering import as_spark
from moldau.pipelines.sql.local.database import open_database
from moldau.pipelines.sql.local.parsing import parse
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.scopes import FromSource
from moldau.pipelines.sql.local.selects import Queries
from moldau.pipelines.sql.local.types import duckdb_type, parse_type, quoted
from moldau.pipelines.sql.local.wanted import WantedRelation
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from tests.spark.statements.statements import Shape, Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """What the local engine says."""

    rows: pa.Table | None = None
    left: str = ""
    """Why it is Spark's."""
    error: str = ""
    """Why it has no answer in Spark either."""


class LocalTable:
    """The local engine over one table, without a topic behind it."""

    def __init__(self, database: duckdb.DuckDBPyConnection, columns: dict[str, str]) -> None:
        self._database = database
        made = tuple(Column(name, its_type) for name, its_type in columns.items())
        self._relation = Relation("t", RelationKind.STREAM, "t", made)

    def answer(self, text: str) -> LocalAnswer:
        """Return the rows of a statement, or why there are none."""
        try:
            query = Queries(self._find, datetime.now(UTC)).translate(parse(text))
            found = self._database.sql(query.text)
            expected = [duckdb_type(each) for each in query.types]
            # What DuckDB computes with must be what Spark does, or it overflows elsewhere.
            computed = [str(each).replace(chr(34), "") for each in found.types]
            assert computed == [each.replace(chr(34), "") for each in expected], (text, computed)
            rows = found.to_arrow_table()
        except GoesToSpark as refusal:
            return LocalAnswer(left=refusal.reason)
        except QueryError as error:
            return LocalAnswer(error=str(error))
        except duckdb.Error as error:
            return LocalAnswer(left=f"it does not work out here: {str(error).splitlines()[0]}")
        return LocalAnswer(as_spark(rows, query))

    def _find(self, name: str, as_of: AsOf | None, alias: str) -> FromSource:
        assert (name.lower(), as_of) == ("t", None)
        return WantedRelation(self._relation, None, "t").source(alias)


@contextmanager
def open_local(rows: pa.Table, columns: dict[str, str]) -> Iterator[LocalTable]:
    """Yield the local engine with the same rows that Spark has."""
    with open_database(_MEMORY_BYTES) as database:
        database.register("given", rows)
        chosen = (
            f"CAST({quoted(name)} AS {duckdb_type(parse_type(its_type))}) AS {quoted(name)}"
            for name, its_type in columns.items()
        )
        database.execute(f"CREATE TABLE t AS SELECT {', '.join(chosen)} FROM given")
        yield LocalTable(database, columns)


class SparkAnswers:
    """Spark's answers; statements of one shape are asked together, for speed."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def functions(self) -> list[str]:
        """Return the names of all functions that are no operators."""
        found = self._spark.sql("SHOW FUNCTIONS").collect()
        return [each.function for each in found if each.function.isidentifier()]

    def check(self, statement: str) -> None:
        """Fail if Spark does not understand a statement."""
        self._spark.sql(statement)

    def ask(self, statement: str) -> pa.Table | str:
        """Return the rows of one statement, or what Spark says against it."""
        try:
            return self._spark.sql(statement).toArrow()
        except Exception as error:  # noqa: BLE001 - Spark has many
            return _condition(str(error))

    def ask_all(self, statements: Sequence[Statement]) -> list[pa.Table | str]:
        """Return the rows of several statements of one shape."""
        if len(statements) == 1 or statements[0].shape is Shape.QUERY:
            return [self.ask(_ordered(each)) for each in statements]
        items = ", ".join(each.item for each in statements)
        found = self.ask(_ordered(Statement(statements[0].shape, f"SELECT {items} FROM t")))
        if isinstance(found, str):
            half = len(statements) // 2
            return [*self.ask_all(statements[:half]), *self.ask_all(statements[half:])]
        assert found.num_columns == len(statements), found.column_names
        return [
            pa.Table.from_arrays([column], schema=pa.schema([field]))
            for column, field in zip(found.columns, found.schema, strict=True)
        ]


def _condition(words: str) -> str:
    """Return the name that Spark has for an error, and what it says."""
    found = re.search(r"\[[A-Z][A-Z0-9_.]+\][^\n]*", words)
    return (found[0] if found is not None else words.splitlines()[0])[:300]


def _ordered(statement: Statement) -> str:
    if statement.shape in (Shape.ROWS, Shape.WINDOW) and "ORDER BY n" not in statement.text[-10:]:
        return f"{statement.text} ORDER BY n"
    return statement.text


def differences(
    ours: pa.Table, theirs: pa.Table, *, is_ordered: bool, tolerance: float = 1e-14
) -> list[str]:
    """Return what is not the same in two answers: names, types or values.

    Where rows are added up in another order, doubles differ in their last digits.
    """
    if ours.column_names != theirs.column_names:
        return [f"names {ours.column_names}, Spark has {theirs.column_names}"]
    types = [
        f"{one.name}: {one.type}, Spark has {other.type}"
        for one, other in zip(ours.schema, theirs.schema, strict=True)
        if written(one.type) != written(other.type)
    ]
    if types:
        return types
    rows = [
        list(zip(*(_values(each) for each in table.columns), strict=True))
        for table in (ours, theirs)
    ]
    if not is_ordered:
        rows = [sorted(each, key=_sorting) for each in rows]
    if not equal(*rows, tolerance):
        return [f"rows {rows[0]}, Spark has {rows[1]}"]
    return []


def _values(column: pa.ChunkedArray) -> list[Any]:
    # Python has no years beyond 9999.
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def _sorting(row: tuple[Any, ...]) -> list[str]:
    # Doubles that are almost the same may differ in their last digits.
    return [f"{each:.6e}" if isinstance(each, float) else repr(each) for each in row]


def written(given: pa.DataType) -> str:
    """Return a type; names and nullability of elements are nobody's business here."""
    return str(given).replace(" not null", "").replace("<item:", "<element:")


def equal(one: Any, other: Any, tolerance: float = 1e-14) -> bool:
    """Whether two values are the same, but for the last digits of doubles."""
    match one, other:
        case float(), float():
            if math.isnan(one) or math.isnan(other):
                return math.isnan(one) and math.isnan(other)
            if one == other:
                return math.copysign(1, one) == math.copysign(1, other)
            return math.isclose(one, other, rel_tol=tolerance, abs_tol=0)
        case list() | tuple(), list() | tuple():
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(equal(*each, tolerance) for each in pairs)
        case dict(), dict():
            values = list(one.values()), list(other.values())
            return list(one) == list(other) and equal(*values, tolerance)
        case _:
            return type(one) is type(other) and bool(one == other)
