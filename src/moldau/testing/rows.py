"""Rows as the records that an app reads, and the other way round."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.decoding.epochs import from_time, to_time
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.key_bytes import encode_key
from moldau.pipelines.streams.sources import parse_schema

_SEPARATORS: Final = (",", ":")


def encode_row(
    source: Source, row: Mapping[str, Any] | bytes | str, key: Sequence[str]
) -> tuple[bytes | None, bytes]:
    """Return key and value of a record: as the source has declared them, or with these as key.

    The columns of a declared key are not in the value, those that are named here are. A text or
    bytes are a value as it is.
    """
    if isinstance(row, bytes | str):
        if key or source.key_schema is not None:
            raise PipelineError(f"topic {source.topic} has keys: send rows as dicts")
        return None, row.encode() if isinstance(row, str) else row
    if source.value_format != "json":
        raise PipelineError(
            f"topic {source.topic} is {source.value_format}: send its values as bytes"
        )
    row = _with_epoch(source, row)
    if key:
        types = {name: _types(source.value_schema).get(name, "string") for name in key}
        return encode_key(types, _key_of(source, row, key)), _dump(row)
    if source.key_schema is None:
        return None, _dump(row)
    types = _types(source.key_schema)
    value = {name: each for name, each in row.items() if name not in types}
    return encode_key(types, _key_of(source, row, list(types))), _dump(value)


def encode_time(source: Source, column: str, time: datetime) -> bytes:
    """Return a value that has a time, and nothing else."""
    if source.value_format != "json":
        raise PipelineError(
            f"topic {source.topic} is {source.value_format}: send a row that is later instead"
        )
    return _dump(_with_epoch(source, {column: time}))


def encode_lone_key(source: Source, key: object) -> bytes:
    """Return a key by itself, for a tombstone."""
    if source.key_schema is None:
        raise PipelineError(f"topic {source.topic} has no key: nothing of it can be deleted")
    return encode_key(_types(source.key_schema), key)


def decode_row(value: bytes | None) -> Any:
    """Return what a JSON value says, None for a tombstone."""
    if value is None:
        return None
    try:
        return json.loads(value)
    except ValueError:
        raise PipelineError(f"{value[:80]!r} is not JSON: look at it with records()") from None


def _with_epoch(source: Source, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row whose time is a number, if its source has declared that."""
    epoch = source.epoch
    if epoch is None or not isinstance(row.get(epoch.column), datetime):
        return row
    return {**row, epoch.column: from_time(_in_utc(row[epoch.column]), epoch.unit)}


def read_time(source: Source, column: str, value: object) -> datetime:
    """Return the time that a row has, as Spark reads it."""
    match value:
        case datetime():
            return _in_utc(value)
        case str():
            try:
                return _in_utc(datetime.fromisoformat(value))
            except ValueError:
                pass
        case int() if not isinstance(value, bool):
            unit = "s" if source.epoch is None else source.epoch.unit
            time = to_time(value, unit)
            if time is not None:
                return time
        case _:
            pass
    raise PipelineError(f"{column}={value!r} is no time: give a datetime, or as 2026-11-16T08:00Z")


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _key_of(source: Source, row: Mapping[str, Any], names: Sequence[str]) -> object:
    for name in names:
        if name not in row:
            raise PipelineError(
                f"topic {source.topic}: a row has no {name}, which is its key: {dict(row)}"
            )
    return row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)


def _types(schema: str | None) -> dict[str, str]:
    fields = [] if schema is None else parse_schema("schema", schema).fields
    return {each.name: each.dataType.simpleString() for each in fields}


def _dump(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, default=_as_json, separators=_SEPARATORS, ensure_ascii=False).encode()


def _as_json(value: object) -> str:
    match value:
        case datetime():
            return _in_utc(value).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            raise PipelineError(f"{value!r} is no JSON: give it as JSON has it")
