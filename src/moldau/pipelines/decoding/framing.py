"""What Confluent's serializers put before a value: a zero, a schema's id, indexes for Protobuf."""

from typing import Final

HEADER_BYTES: Final = 5
HEADERS: Final = ("auto", "confluent", "none")


def find_schema_id(data: bytes) -> int | None:
    """Return the id of the writer's schema in the registry, None if there is no header."""
    if len(data) < HEADER_BYTES or data[0] != 0:
        return None
    return int.from_bytes(data[1:HEADER_BYTES], "big")


def skip_message_indexes(data: bytes) -> int:
    """Return where a Protobuf message begins behind the header.

    Numbers lead to the message's type in the writer's file: how many, and then each. They are
    zigzag varints; 0 alone means the file's first message.
    """
    count, position = _read_varint(data, HEADER_BYTES)
    for _ in range(count):
        _, position = _read_varint(data, position)
    return position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("the message indexes of its header are cut off")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
