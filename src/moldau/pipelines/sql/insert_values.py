"""`INSERT INTO ... VALUES`: rows as the records of a relation's topic."""

import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, cast

from sqlglot import exp

from moldau.pipelines.decoding.epochs import Epoch, from_time, to_time
from moldau.pipelines.decoding.reasons import YEARS
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.definitions import folded
from moldau.pipelines.sql.language.literals import Json, ValueMismatchError, dump_json, json_value
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.language.queries import Fragment, Pseudo
from moldau.pipelines.sql.language.statements import InsertValues
from moldau.pipelines.sql.ports import OutRecord
from moldau.pipelines.sql.relations import (
    EPOCH_TYPE,
    TIME_TYPE,
    Column,
    Relation,
    RelationKind,
)
from moldau.pipelines.streams.key_bytes import encode_key

_PLAIN: Final[Mapping[str, tuple[str, Callable[[Json], bytes]]]] = {
    "string": ("string", lambda value: cast("str", value).encode()),
    "raw": ("binary", lambda value: cast("bytes", value)),
    "int": ("int", struct.Struct(">i").pack),
    "long": ("bigint", struct.Struct(">q").pack),
    "float": ("float", struct.Struct(">f").pack),
    "double": ("double", struct.Struct(">d").pack),
}
"""The type of the one column that a value of each format is, and how Java's serializer has it."""
_ROWTIME: Final = Column(str(Pseudo.ROWTIME), "timestamp")


class InsertError(PipelineError):
    """A row that does not fit its relation."""


def records_of(statement: InsertValues, relation: Relation) -> list[OutRecord]:
    """Return the records to write; `InsertError` names the column that is wrong, and the row."""
    columns = _columns(statement, relation)
    records = []
    for number, row in enumerate(statement.rows, 1):
        where = f"row {number}, " if len(statement.rows) > 1 else ""
        if len(row) != len(columns):
            names = ", ".join(each.name for each in columns)
            raise InsertError(f"{where}{len(row)} values for {len(columns)} columns: {names}")
        values = {
            column.name: _value(where, column, fragment, relation)
            for column, fragment in zip(columns, row, strict=True)
        }
        time = values.pop(_ROWTIME.name, None)
        records.append(
            OutRecord(
                _key(where, relation, values),
                _payload(relation, values),
                None if time is None else _milliseconds(cast("str", time)),
            )
        )
    return records


def _columns(statement: InsertValues, relation: Relation) -> list[Column]:
    if not statement.columns:
        return list(relation.columns)
    known = {folded(each.name): each for each in relation.columns}
    known.setdefault(folded(_ROWTIME.name), _ROWTIME)
    found = []
    for name in statement.columns:
        column = known.get(folded(name))
        if column is None:
            close = close_matches(name, [each.name for each in relation.columns])
            raise InsertError(f"{relation.name} has no column {name}{close}")
        if column in found:
            raise InsertError(f"column {name} is there twice")
        found.append(column)
    return found


def _value(where: str, column: Column, fragment: Fragment, relation: Relation) -> Json:
    epoch = relation.epoch
    try:
        if epoch is not None and epoch.column == column.name:
            return _epoch_value(fragment.expression, epoch)
        return json_value(fragment.expression, exp.DataType.build(column.type, dialect="spark"))
    except ValueMismatchError as error:
        raise InsertError(f"{where}column {column.name}: {error}") from None


def _epoch_value(expression: exp.Expr, epoch: Epoch) -> Json:
    """Return a time as the number that records have, of such a number or of a timestamp."""
    try:
        number = json_value(expression, exp.DataType.build(EPOCH_TYPE, dialect="spark"))
    except ValueMismatchError:
        text = json_value(expression, exp.DataType.build(TIME_TYPE, dialect="spark"))
        return from_time(datetime.fromisoformat(cast("str", text)), epoch.unit)
    if number is not None and to_time(cast("int", number), epoch.unit) is None:
        raise ValueMismatchError(f"{number} {YEARS}, in {epoch.unit}")
    return number


def _key(where: str, relation: Relation, values: Mapping[str, Json]) -> bytes | None:
    columns = relation.keys
    if not columns:
        return None
    parts = {each.name: values.get(each.name) for each in columns}
    missing = [name for name, value in parts.items() if value is None]
    if missing and relation.kind is RelationKind.TABLE:
        raise InsertError(f"{where}column {missing[0]}: a table's key cannot be null")
    if len(missing) == len(parts):
        return None
    key = parts if len(parts) > 1 else next(iter(parts.values()))
    return encode_key({each.name: each.type for each in columns}, key)


def _payload(relation: Relation, values: Mapping[str, Json]) -> bytes | None:
    columns = relation.values
    if relation.format == "json":
        return dump_json({each.name: values.get(each.name) for each in columns}).encode()
    if relation.format not in _PLAIN:
        raise InsertError(
            f"{relation.name} is {relation.format}, which INSERT ... VALUES does not write: it "
            f"writes json, {', '.join(_PLAIN)}"
        )
    kind, pack = _PLAIN[relation.format]
    if [each.type for each in relation.stored_values] != [kind]:
        raise InsertError(f"{relation.name} is {relation.format}: its value is one {kind} column")
    value = values.get(columns[0].name)
    return None if value is None else pack(value)


def _milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)
