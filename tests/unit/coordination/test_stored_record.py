"""Coordinators' records as bytes, and the partition that a key's records are in."""

import pytest

from moldau.coordination.shards import shard_of
from moldau.coordination.stored_record import StoredRecord, decode_record, record_types
from moldau.kernel.errors import ProtocolError
from moldau.protocol.stored import offsets
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue

TYPES = record_types(offsets)
KEY = OffsetCommitKey(group="g", topic="t", partition=3)


@pytest.mark.parametrize("version", range(5))
def test_what_is_encoded_is_decoded(version: int) -> None:
    value = OffsetCommitValue(offset=9, metadata="m", commit_timestamp=1)
    key, data = StoredRecord(KEY, value, version).encode()
    assert key == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert data is not None
    assert data[:2] == bytes([0, version])
    assert decode_record(TYPES, key, data) == (KEY, value)


def test_without_a_value_it_takes_back() -> None:
    key, value = StoredRecord(KEY, None).encode()
    assert value is None
    assert decode_record(TYPES, key, None) == (KEY, None)


def test_types_that_are_not_known_are_skipped() -> None:
    assert decode_record(TYPES, b"\x7f\xff...", b"...") is None


@pytest.mark.parametrize("key", [None, b"", b"\0"])
def test_a_key_without_a_type_is_an_error(key: bytes | None) -> None:
    with pytest.raises(ProtocolError, match="no type"):
        decode_record(TYPES, key, None)


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\5", b"\xff\xff", b"\0\0\0"])
def test_a_value_that_cannot_be_read_is_an_error(value: bytes) -> None:
    key, _ = StoredRecord(KEY, None).encode()
    with pytest.raises(ProtocolError):
        decode_record(TYPES, key, value)


@pytest.mark.parametrize(
    ("key", "shard"),
    [
        ("", 0),
        ("test", 48),
        ("console-consumer-1", 24),
        ("größe", 7),
        ("\U0001f600", 49),
        # Java has no positive counterpart of this one's hash.
        ("polygenelubricants", 0),
    ],
)
def test_keys_are_where_java_puts_them(key: str, shard: int) -> None:
    assert shard_of(key, 50) == shard
