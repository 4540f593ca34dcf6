"""The envelope of records in __cluster_metadata: frame version, type, version, then the message."""

from typing import Final

from moldau.kernel.errors import ProtocolError
from moldau.metadata.errors import UnknownRecordError
from moldau.protocol.schema import Buffer, Message
from moldau.protocol.stored import cluster_metadata

FRAME_VERSION: Final = 1

RECORD_TYPES: Final[dict[int, type[Message]]] = {
    cls._api_key: cls
    for cls in vars(cluster_metadata).values()
    if isinstance(cls, type) and issubclass(cls, Message) and cls is not Message
    if cls._api_key is not None
}
_KEYS: Final = {cls: key for key, cls in RECORD_TYPES.items()}


def encode_record(record: Message, version: int) -> bytes:
    """Encode a metadata record with its envelope."""
    envelope = _varint(FRAME_VERSION) + _varint(_KEYS[type(record)]) + _varint(version)
    return envelope + record.encode(version)


def decode_record(value: Buffer) -> Message:
    """Decode the value of a metadata record; `UnknownRecordError`, `ProtocolError`."""
    frame_version, position = _read_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise UnknownRecordError(f"a metadata record in a frame of version {frame_version}")
    key, position = _read_varint(value, position)
    version, position = _read_varint(value, position)
    cls = RECORD_TYPES.get(key)
    if cls is None:
        raise UnknownRecordError(f"a metadata record of type {key}, which is not known here")
    first, last = cls._versions
    if not first <= version <= last:
        raise UnknownRecordError(
            f"{cls.__name__} version {version}; versions {first} to {last} are known here"
        )
    record: Message
    record, end = cls.plan(version).decode_from(value, position)
    if end != len(value):
        raise ProtocolError(f"{len(value) - end} bytes behind a {cls.__name__}")
    return record


def version_of(value: Buffer) -> int:
    """Return the version in the envelope of a metadata record."""
    position = 0
    for _ in range(3):
        version, position = _read_varint(value, position)
    return version


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: Buffer, position: int) -> tuple[int, int]:
    number = 0
    # Types and versions are 16-bit numbers, so three bytes hold them all.
    for shift in (0, 7, 14):
        if position >= len(data):
            raise ProtocolError("a metadata record ends inside its envelope")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ProtocolError("a number in the envelope of a metadata record is too long")
