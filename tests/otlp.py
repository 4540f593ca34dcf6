"""A writer of OpenTelemetry metrics, as small as the reader that it tests."""

import struct


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes | str | int) -> bytes:
    """Write a field of bytes, or a varint."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def sfixed64(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<q", value)


def attributes(number: int, pairs: dict[str, bytes | str]) -> bytes:
    """Write attributes; values that are not texts come as the bytes of an AnyValue."""
    return b"".join(
        field(
            number,
            field(1, key) + field(2, value if isinstance(value, bytes) else field(1, value)),
        )
        for key, value in pairs.items()
    )


def gauge(name: str, value: float, **labels: bytes | str) -> bytes:
    point = attributes(7, labels) + double(4, value)
    return field(2, field(1, name) + field(5, field(1, point)))


def increase(name: str, value: int, **labels: bytes | str) -> bytes:
    """Write a sum since the last push."""
    point = attributes(7, labels) + sfixed64(6, value)
    return field(2, field(1, name) + field(7, field(1, point) + field(2, 1) + field(3, 1)))


def metrics_data(*metrics: bytes, **resource: bytes | str) -> bytes:
    """Write a whole push."""
    scope = field(1, field(1, "scope")) + b"".join(metrics)
    return field(1, field(1, attributes(1, resource)) + field(2, scope))
