"""Coordinators' records in their topics: a number in front of the key says what both are."""

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError  # noqa: N812 - struct's own name says nothing here
from types import ModuleType
from typing import Final, NamedTuple

from moldau.kernel.errors import ProtocolError
from moldau.protocol.schema import Message

_NUMBER: Final = Struct(">h")

RecordTypes = Mapping[int, tuple[type[Message], type[Message]]]
"""The classes of keys and values, by the number in front of a key."""


class StoredRecord(NamedTuple):
    """A record of a coordinator; without a value it takes back the one before with its key."""

    key: Message
    value: Message | None
    version: int = 0
    """That of the value; a key has one only."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of key and value."""
        cls = type(self.key)
        key = _NUMBER.pack(cls._api_key) + cls.plan(0).encode(self.key)
        value = self.value
        if value is None:
            return key, None
        return key, _NUMBER.pack(self.version) + value.plan(self.version).encode(value)

    def fits(self, size_max: int) -> bool:
        """Whether key and value together are not larger than that."""
        key, value = self.encode()
        return len(key) + len(value or b"") <= size_max


def record_types(*modules: ModuleType) -> RecordTypes:
    """Return the types that modules declare as pairs of `...Key` and `...Value`."""
    found = {}
    for module in modules:
        for name, cls in vars(module).items():
            value = vars(module).get(f"{name.removesuffix('Key')}Value")
            if name.endswith("Key") and value is not None:
                found[cls._api_key] = cls, value
    return found


def decode_record(
    types: RecordTypes, key: bytes | None, value: bytes | None
) -> tuple[Message, Message | None] | None:
    """Return a record's key and value, None for a type that is not known here.

    `ProtocolError` if it cannot be read, or is of a version that is not known: skipping that one
    would lose what it says of something that is known.
    """
    try:
        (number,) = _NUMBER.unpack_from(key or b"")
    except StructError:
        raise ProtocolError("a coordinator's record has no type") from None
    classes = types.get(number)
    if classes is None:
        return None
    assert key is not None, "it has a type"
    decoded_key, _ = classes[0].plan(0).decode_from(key, _NUMBER.size)
    return decoded_key, None if value is None else _decode_value(classes[1], value)


def _decode_value(cls: type[Message], value: bytes) -> Message:
    try:
        (version,) = _NUMBER.unpack_from(value)
    except StructError:
        raise ProtocolError(f"a {cls.__name__} has no version") from None
    first, last = cls._versions
    if not first <= version <= last:
        raise ProtocolError(
            f"{cls.__name__} version {version}; versions {first} to {last} are known here"
        )
    decoded: Message
    decoded, _ = cls.plan(version).decode_from(value, _NUMBER.size)
    return decoded
