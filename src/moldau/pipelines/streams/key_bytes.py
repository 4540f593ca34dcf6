"""A key as the bytes that Java's serializers write, and its partition, without Spark."""

import json
import struct
from collections.abc import Mapping
from typing import Final

from moldau._native.accumulator import murmur2
from moldau.pipelines.errors import PipelineError

_NUMBERS: Final = {"int": struct.Struct(">i"), "bigint": struct.Struct(">q")}


def encode_key(types: Mapping[str, str], key: object) -> bytes:
    """Return the bytes of a key whose columns have these types, by Spark's names for them.

    They are those of `key_column`. A key of several columns is a tuple or a dict.
    """
    if len(types) > 1:
        return _encode_json(types, key)
    ((name, kind),) = types.items()
    match kind, key:
        case ("string", str()):
            return key.encode()
        case ("binary", bytes() | bytearray()):
            return bytes(key)
        case ("int" | "bigint", int()) if not isinstance(key, bool):
            try:
                return _NUMBERS[kind].pack(key)
            except struct.error:
                raise PipelineError(f"key {name}={key}: it does not fit {kind}") from None
        case _ if kind.startswith("struct<") and isinstance(key, dict):
            return _dump(key)
        case _:
            raise PipelineError(f"key {name}={key!r}: {kind} is wanted")


def partition_of(key: bytes, partition_count: int) -> int:
    """Return where Java's client, and ours, puts a key."""
    # Without the sign bit, as Java has no numbers without sign.
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


def _encode_json(types: Mapping[str, str], key: object) -> bytes:
    names = ", ".join(types)
    if isinstance(key, tuple) and len(key) == len(types):
        return _dump(dict(zip(types, key, strict=True)))
    if isinstance(key, dict) and key.keys() == types.keys():
        return _dump({name: key[name] for name in types})
    raise PipelineError(f"key={key!r}: a tuple or a dict of {names} is wanted")


def _dump(values: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    except TypeError as error:
        raise PipelineError(f"key={dict(values)!r}: {error}; give it as JSON has it") from None
