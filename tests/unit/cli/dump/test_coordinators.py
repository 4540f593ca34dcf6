"""Records of coordinators, as they are shown."""

from moldau._native.records import Record
from moldau.cli.dump.coordinators import read_state, state_texts, topic_of
from moldau.coordination.stored_record import StoredRecord
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue

TOPIC = "__consumer_offsets"


def test_which_folders_they_are_in() -> None:
    assert topic_of("__consumer_offsets-12") == TOPIC
    assert topic_of("__share_group_state-0") == "__share_group_state"
    assert topic_of("clicks-0") is None


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 0, key, value, [])


def test_an_offset() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    encoded = StoredRecord(key, OffsetCommitValue(offset=5, metadata="x"), 1).encode()
    row = read_state(TOPIC, record(*encoded))
    assert row is not None
    assert (row.name, row.type, row.version) == ("OffsetCommit", 1, 1)
    text, value = state_texts(TOPIC, record(*encoded))
    assert text == '{"type":"1","data":{"group":"g","topic":"t","partition":1}}'
    assert value is not None
    assert value.startswith('{"version":"1","data":{"offset":5,"metadata":"x"')
    assert state_texts(TOPIC, record(encoded[0], None)) == (text, "<DELETE>")


def test_what_cannot_be_read() -> None:
    assert state_texts(TOPIC, record(b"\x03\xe7", b"")) == (
        "Unknown record type 999 at offset 7, skipping.",
        None,
    )
    for key in (None, b"", b"\x00\x01\x00\x09"):
        text, value = state_texts(TOPIC, record(key, b"\x00\x01"))
        assert text.startswith("Error at offset 7, skipping.")
        assert value is None
