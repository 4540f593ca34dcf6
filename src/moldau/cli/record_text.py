"""Records as text, in the form that Kafka's console consumer prints, and as JSON."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError
from moldau.cli.printing import text_or_base64

if TYPE_CHECKING:
    from moldau._native.fetched import Record


def _number(layout: str) -> Callable[[bytes], bytes]:
    form = struct.Struct(layout)

    def read(data: bytes) -> bytes:
        if len(data) != form.size:
            raise CommandError(
                f"a number of {form.size} bytes is wanted, and there are {len(data)}: choose"
                " another deserializer"
            )
        return str(form.unpack(data)[0]).encode()

    return read


DESERIALIZERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "String": bytes,
    "ByteArray": bytes,
    "Bytes": bytes,
    "Short": _number(">h"),
    "Integer": _number(">i"),
    "Long": _number(">q"),
    "Float": _number(">f"),
    "Double": _number(">d"),
}
"""Those of Kafka that need no class of somebody else, by the beginning of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """What is printed of a record, in which order is always the same."""

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    delivery: bool = False
    epoch: bool = False
    headers: bool = False
    key: bool = False
    value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null: bytes = b"null"
    read_key: Callable[[bytes], bytes] = field(default=bytes)
    read_value: Callable[[bytes], bytes] = field(default=bytes)

    def line(self, record: "Record") -> bytes:
        """Return a record's line."""
        parts = []
        if self.timestamp:
            parts.append(_timestamp(record))
        if self.partition:
            parts.append(b"Partition:%d" % record.partition)
        if self.offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.delivery:
            count = record.delivery_count  # 0 is not of a share group
            parts.append(b"Delivery:%d" % count if count else b"Delivery:NOT_PRESENT")
        if self.epoch:
            epoch = record.leader_epoch
            parts.append(b"Epoch:%d" % epoch if epoch >= 0 else b"Epoch:NOT_PRESENT")
        if self.headers:
            parts.append(self._headers(record))
        if self.key:
            parts.append(self.null if record.key is None else self.read_key(record.key))
        if self.value:
            parts.append(self.null if record.value is None else self.read_value(record.value))
        return self.key_separator.join(parts) + self.line_separator

    def _headers(self, record: "Record") -> bytes:
        pairs = [
            name.encode() + b":" + (self.null if value is None else value)
            for name, value in record.headers
        ]
        return self.headers_separator.join(pairs) or b"NO_HEADERS"


def _timestamp(record: "Record") -> bytes:
    if record.timestamp_ms < 0:
        return b"NO_TIMESTAMP"
    return f"{record.timestamp_type}:{record.timestamp_ms}".encode()


def record_object(record: "Record") -> dict[str, object]:
    """Return a record for JSON; what is not UTF-8 is in base64, and named so."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **text_or_base64("key", record.key),
        **text_or_base64("value", record.value),
        "headers": [
            {"name": name, **text_or_base64("value", value)} for name, value in record.headers
        ],
    }
