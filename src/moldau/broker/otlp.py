"""OpenTelemetry's metrics as clients push them (KIP-714): the few protobuf fields that say a value.

Numbers in gauges and sums are read; histograms and summaries, which no client sends, are passed
over. A message is read as it comes, under bounds, because it is read on the broker's loop.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from moldau.kernel.errors import ProtocolError

FIELDS_MAX: Final = 50_000
"""More fields than any client sends: reading them takes a twentieth of a second."""

Attributes: TypeAlias = tuple[tuple[str, str], ...]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = struct.Struct("<d")
_INT: Final = struct.Struct("<q")
_DELTA: Final = 1


class Point(NamedTuple):
    """One value of a metric."""

    name: str
    attributes: Attributes
    value: float
    is_increase: bool
    """Whether it is to be added to those before: a sum since the last push."""


class _Field(NamedTuple):
    number: int
    wire_type: int
    varint: int
    content: memoryview


class _Reader:
    """Reads messages inside messages, and counts fields over all of them."""

    def __init__(self) -> None:
        self._left = FIELDS_MAX

    def fields(self, data: memoryview) -> Iterator[_Field]:
        position = 0
        while position < len(data):
            self._left -= 1
            if self._left < 0:
                raise ProtocolError(f"metrics have more than {FIELDS_MAX} fields")
            tag, position = _varint(data, position)
            number, wire_type = tag >> 3, tag & 7
            value = 0
            start = position
            if wire_type == _VARINT:
                value, position = _varint(data, position)
            elif wire_type == _BYTES:
                size, start = _varint(data, position)
                position = start + size
            elif wire_type in (_FIXED64, _FIXED32):
                position += 8 if wire_type == _FIXED64 else 4
            else:
                raise ProtocolError(f"metrics have a field of wire type {wire_type}")
            if position > len(data):
                raise ProtocolError("metrics are cut off inside a field")
            yield _Field(number, wire_type, value, data[start:position])

    def messages(self, data: memoryview, number: int) -> Iterator[memoryview]:
        for field in self.fields(data):
            if field.number == number and field.wire_type == _BYTES:
                yield field.content


def read_points(data: bytes) -> Iterator[Point]:
    """Read the values of a `MetricsData` message; `ProtocolError` if it is damaged or too long."""
    reader = _Reader()
    for resource_metrics in reader.messages(memoryview(data), 1):
        resource: Attributes = ()
        scopes = []
        for field in reader.fields(resource_metrics):
            if field.number == 1 and field.wire_type == _BYTES:
                resource = _attributes(reader, field.content, 1)
            elif field.number == 2 and field.wire_type == _BYTES:
                scopes.append(field.content)
        for scope in scopes:
            for metric in reader.messages(scope, 2):
                yield from _metric_points(reader, metric, resource)


def _metric_points(reader: _Reader, metric: memoryview, resource: Attributes) -> Iterator[Point]:
    name = ""
    for field in reader.fields(metric):
        if field.wire_type != _BYTES:
            continue
        if field.number == 1:
            name = _text(field.content)
        elif field.number in (5, 7):
            is_increase = field.number == 7 and _is_delta(reader, field.content)
            for point in reader.messages(field.content, 1):
                value, attributes = _number(reader, point)
                yield Point(name, resource + attributes, value, is_increase)


def _is_delta(reader: _Reader, sum_: memoryview) -> bool:
    return any(
        field.number == 2 and field.varint == _DELTA
        for field in reader.fields(sum_)
        if field.wire_type == _VARINT
    )


def _number(reader: _Reader, point: memoryview) -> tuple[float, Attributes]:
    value = 0.0
    for field in reader.fields(point):
        if field.wire_type == _FIXED64 and field.number == 4:
            (value,) = _DOUBLE.unpack(field.content)
        elif field.wire_type == _FIXED64 and field.number == 6:
            (value,) = _INT.unpack(field.content)
    return value, _attributes(reader, point, 7)


def _attributes(reader: _Reader, data: memoryview, number: int) -> Attributes:
    found = []
    for pair in reader.messages(data, number):
        key = value = ""
        for field in reader.fields(pair):
            if field.number == 1 and field.wire_type == _BYTES:
                key = _text(field.content)
            elif field.number == 2 and field.wire_type == _BYTES:
                value = _value(reader, field.content)
        found.append((key, value))
    return tuple(found)


def _value(reader: _Reader, data: memoryview) -> str:
    """Return the text of an attribute's value; those that are lists have none."""
    for field in reader.fields(data):
        match field.number, field.wire_type:
            case 1, 2:
                return _text(field.content)
            case 2, 0:
                return "true" if field.varint else "false"
            case 3, 0:
                return str(field.varint - (field.varint >> 63 << 64))
            case 4, 1:
                return str(_DOUBLE.unpack(field.content)[0])
            case _:
                pass
    return ""


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ProtocolError("metrics are cut off inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ProtocolError("metrics have a number of more than ten bytes")


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("metrics have a text that is not UTF-8") from None
