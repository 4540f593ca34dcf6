"""Records of coordinators' topics as JSON: groups and offsets, transactions, share groups."""

from typing import Final, NamedTuple

from moldau._native.records import Record
from moldau.cli.dump.messages import as_json, compact
from moldau.coordination.stored_record import RecordTypes, decode_record, record_types
from moldau.kernel.errors import ProtocolError
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored import (
    consumer_groups,
    offsets,
    share_group_state,
    share_groups,
    transaction_state,
)

TYPES: Final[dict[str, RecordTypes]] = {
    "__consumer_offsets": record_types(offsets, consumer_groups, share_groups),
    "__transaction_state": record_types(transaction_state),
    "__share_group_state": record_types(share_group_state),
}
"""What may be in a coordinator's topic."""

DELETED: Final = "<DELETE>"


class StateRow(NamedTuple):
    """A coordinator's record, read."""

    type: int
    name: str
    key: dict[str, object]
    version: int | None
    """That of the value; None without one."""
    value: dict[str, object] | None


def topic_of(folder: str) -> str | None:
    """Return the coordinators' topic that a partition's folder is of, if it is of one."""
    topic = folder.rpartition("-")[0]
    return topic if topic in TYPES else None


def read_state(topic: str, record: Record) -> StateRow | None:
    """Read a coordinator's record; None for a type that is not known.

    `ProtocolError` if it cannot be read.
    """
    found = decode_record(TYPES[topic], record.key, record.value)
    if found is None:
        return None
    key, value = found
    name = type(key).__name__.removesuffix("Key")
    number = int.from_bytes((record.key or b"")[:2])
    if value is None:
        return StateRow(number, name, as_json(key, 0), None, None)
    version = int.from_bytes((record.value or b"")[:2])
    return StateRow(number, name, as_json(key, 0), version, _value_json(value, version))


def _value_json(value: Message, version: int) -> dict[str, object]:
    data = as_json(value, version)
    if isinstance(value, offsets.GroupMetadataValue) and value.protocol_type == "consumer":
        members = data["members"]
        assert isinstance(members, list)
        for row, member in zip(members, value.members, strict=True):
            _read(row, "subscription", ConsumerProtocolSubscription, bytes(member.subscription))
            _read(row, "assignment", ConsumerProtocolAssignment, bytes(member.assignment))
    return data


def _read(row: dict[str, object], name: str, cls: type[Message], data: bytes) -> None:
    """Replace what consumers tell each other by what it says; what is not that stays as it is."""
    version = int.from_bytes(data[:2])
    first, last = cls._versions
    try:
        if first <= version <= last:
            row[name] = as_json(cls.plan(version).decode_from(data, 2)[0], version)
    except ProtocolError:
        pass


def state_texts(topic: str, record: Record) -> tuple[str, str | None]:
    """Return key and value as Kafka's tool prints them; one that cannot be read says why."""
    try:
        row = read_state(topic, record)
    except ProtocolError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    if row is None:
        number = int.from_bytes((record.key or b"")[:2])
        return f"Unknown record type {number} at offset {record.offset}, skipping.", None
    key = compact({"type": str(row.type), "data": row.key})
    if row.value is None:
        return key, DELETED
    return key, compact({"version": str(row.version), "data": row.value})
