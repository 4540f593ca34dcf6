"""Stored messages as JSON, in the form that Kafka's tools print them."""

import json
from base64 import b64encode
from collections.abc import Iterator

from moldau._native.records import Record
from moldau.kernel.errors import ProtocolError
from moldau.kernel.uuid_text import uuid_to_text
from moldau.metadata.errors import UnknownRecordError
from moldau.metadata.record_frame import decode_record, version_of
from moldau.protocol.schema import Array, Field, FieldType, Message, Struct, uuid
from moldau.records.control import ControlRecord, ControlType, read_control_record


def camel(name: str) -> str:
    """Return a field's name as Kafka's schemas write it."""
    first, *rest = name.split("_")
    if first == "kraft":
        first = "kRaft"  # the schemas say KRaft, and their names begin small
    return first + "".join(word.capitalize() for word in rest)


def as_json(struct: Struct, version: int) -> dict[str, object]:
    """Return what a version of a struct has, a tagged field only if it is set."""
    return {camel(name): value for name, value in _members(struct, version)}


def _members(struct: Struct, version: int) -> Iterator[tuple[str, object]]:
    for field in struct._fields:
        value = getattr(struct, field.name)
        is_there = field.since <= version <= field.until
        if is_there and not (field.tag is not None and _is_default(field, value)):
            yield field.name, _json_value(field.type, value, version)


def _is_default(field: Field, value: object) -> bool:
    return value == field.default or (field.default == () and value == [])


def _json_value(kind: FieldType, value: object, version: int) -> object:
    if isinstance(kind, Array) and isinstance(value, list | tuple):
        return [_json_value(kind.of, each, version) for each in value]
    if isinstance(value, Struct):
        return as_json(value, version)
    if isinstance(value, bytes | bytearray | memoryview):
        return uuid_to_text(bytes(value)) if kind is uuid else b64encode(value).decode("ascii")
    return value


def metadata_text(record: Record) -> str:
    """Return a record of __cluster_metadata; one that cannot be read says why."""
    value = record.value or b""
    try:
        message, version = decode_record(value), version_of(value)
    except (ProtocolError, UnknownRecordError) as error:
        return f"Error at {record.offset}, skipping. {error}"
    return compact(
        {"type": type_name(message), "version": version, "data": as_json(message, version)}
    )


def type_name(message: Message) -> str:
    """Return the name of a metadata record's type, as Kafka's enumeration has it."""
    words = "".join(
        f"_{letter}" if letter.isupper() else letter for letter in type(message).__name__
    )
    return words.lstrip("_").upper()


def read_control(record: Record) -> tuple[ControlRecord, str]:
    """Return a control record, and the name of its type."""
    control = read_control_record(record)
    try:
        return control, ControlType(control.type).name
    except ValueError:
        return control, "UNKNOWN"


def compact(value: object) -> str:
    """Return JSON without blanks, as Java's library writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
