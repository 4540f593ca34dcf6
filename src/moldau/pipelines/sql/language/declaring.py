"""The columns of CREATE STREAM and CREATE TABLE, and whether all of it fits together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from moldau.pipelines.decoding.epochs import UNITS
from moldau.pipelines.sql.language.column_types import take_type
from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.lexing import Token
from moldau.pipelines.sql.language.properties import Properties, Said, is_topic
from moldau.pipelines.sql.language.queries import Pseudo
from moldau.pipelines.sql.relations import EPOCH_TYPE, Column, RelationKind

_TIMES: Final = ("timestamp", "timestamp_ntz")
# What Java's serializers write of a single column, by our names for them.
_PLAIN_FORMATS: Final = {
    "string": "string", "int": "int", "bigint": "long", "float": "float", "double": "double",
    "binary": "raw",
}  # fmt: skip


def take_columns(cursor: Cursor, kind: RelationKind) -> tuple[Column, ...]:
    """Take `(name TYPE [KEY | PRIMARY KEY], ...)`."""
    opening = cursor.next
    cursor.expect("(")
    columns: dict[str, Column] = {}
    while True:
        token = cursor.next
        name = cursor.name("the name of a column")
        assert opening is not None
        assert token is not None
        if name.lower() in columns:
            raise cursor.error(f"there are two columns {name}", token)
        if name.lower() in set(Pseudo):
            raise cursor.error(f"every row has a {name} of its own; choose another name", token)
        column_type = take_type(cursor)
        columns[name.lower()] = Column(name, column_type, _take_key(cursor, kind))
        if not cursor.take(","):
            break
    if not cursor.take(")"):
        key = "KEY" if kind is RelationKind.STREAM else "PRIMARY KEY"
        cursor.fail(f"',', ')' or {key}", known=["KEY", "PRIMARY"])
    found = tuple(columns.values())
    if kind is RelationKind.TABLE and not any(each.is_key for each in found):
        raise cursor.error("a table needs a PRIMARY KEY: whose latest record counts?", opening)
    return found


def _take_key(cursor: Cursor, kind: RelationKind) -> bool:
    token = cursor.next
    if cursor.take("PRIMARY"):
        cursor.expect("KEY")
        if kind is RelationKind.STREAM and token is not None:
            raise cursor.error(
                "a stream has a KEY; only a table has a PRIMARY KEY", token, "write KEY"
            )
        return True
    if cursor.take("KEY"):
        if kind is RelationKind.TABLE and token is not None:
            raise cursor.error(
                "a table has a PRIMARY KEY; only a stream has a KEY", token, "write PRIMARY KEY"
            )
        return True
    return False


def check_declared(
    cursor: Cursor, name: Token, columns: Sequence[Column], said: Said
) -> Properties:
    """Return the properties, if they fit to these columns."""
    check_topic(cursor, name, said.properties)
    _check_event_time(cursor, columns, said)
    keys = [each for each in columns if each.is_key]
    if said.properties.key_format is not None:
        # What a relation's keys are is fixed; that somebody says so does no harm.
        is_plain = len(keys) == 1 and keys[0].type in _PLAIN_FORMATS
        if said.properties.key_format != ("kafka" if is_plain else "json"):
            raise cursor.error(
                "a key of one plain column has key_format kafka, any other json",
                said.tokens["key_format"],
            )
    return _with_format(cursor, [each for each in columns if not each.is_key], said)


def check_topic(cursor: Cursor, name: Token, said: Properties) -> None:
    """Insist on a topic, if the name cannot be one."""
    if said.topic is None and not is_topic(name.value):
        raise cursor.error(f"no topic can be called {name.value!r}; add WITH (topic='...')", name)


def _check_event_time(cursor: Cursor, columns: Sequence[Column], said: Said) -> None:
    wanted = said.properties.event_time
    if wanted is None:
        return
    token = said.tokens["event_time"]
    found = next((each for each in columns if each.name.lower() == wanted.lower()), None)
    if found is None:
        names = ", ".join(each.name for each in columns)
        raise cursor.error(f"there is no column {wanted}; there are {names}", token)
    check_event_time(cursor, found, said)


def check_event_time(cursor: Cursor, found: Column, said: Said) -> None:
    """Insist on a time: a timestamp, or a number of the value, which alone has a unit."""
    token, unit = said.tokens["event_time"], said.tokens.get("event_time_unit")
    is_epoch = found.type == EPOCH_TYPE and not found.is_key
    if found.type not in _TIMES and not is_epoch:
        where = " of the key" if found.is_key else ""
        raise cursor.error(
            f"{found.name} is {found.type}{where}; event_time is a TIMESTAMP, or a BIGINT of the "
            f"value with event_time_unit: {', '.join(UNITS)}",
            token,
        )
    if unit is not None and not is_epoch:
        raise cursor.error(
            f"{found.name} is {found.type}; only a BIGINT has an event_time_unit, leave it out",
            unit,
        )


def _with_format(cursor: Cursor, values: Sequence[Column], said: Said) -> Properties:
    """Return which format ksqlDB's format kafka is: it depends on the column."""
    if said.properties.format != "kafka":
        return said.properties
    if len(values) != 1 or values[0].type not in _PLAIN_FORMATS:
        raise cursor.error(
            f"format kafka is for one column: {', '.join(_PLAIN_FORMATS)}", said.tokens["format"]
        )
    return replace(said.properties, format=_PLAIN_FORMATS[values[0].type])
