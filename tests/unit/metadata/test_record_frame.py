import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.errors import ProtocolError
from moldau.metadata.errors import UnknownRecordError
from moldau.metadata.record_frame import RECORD_TYPES, decode_record, encode_record
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import FeatureLevelRecord, NoOpRecord, TopicRecord
from tests.strategies import SETTINGS, structs, versions_of

ALL = [(cls, version) for cls in RECORD_TYPES.values() for version in versions_of(cls)]


@pytest.mark.parametrize(("cls", "version"), ALL)
def test_round_trip(cls: type[Message], version: int) -> None:
    @SETTINGS
    @given(structs(cls, version))
    def check(record: Message) -> None:
        assert decode_record(encode_record(record, version)) == record

    check()


def test_as_kafka_writes_it() -> None:
    # From a bootstrap.checkpoint of Apache Kafka 4.3.1.
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    written = b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    assert encode_record(record, 0) == written
    assert decode_record(memoryview(written)) == record


@pytest.mark.parametrize(
    "value",
    [
        b"\x00\x0c\x00\x11metadata.version\x00\x1e\x00",
        b"\x02\x14\x00\x00",
        b"\x01\x63\x00\x00",
        b"\x01\x14\x01\x00",
        b"\x01\x06\x00\x00",
        b"\x01\xff\xff\x03\x00\x00",
    ],
)
def test_what_is_not_known(value: bytes) -> None:
    with pytest.raises(UnknownRecordError):
        decode_record(value)


@pytest.mark.parametrize(
    "value", [b"", b"\x01", b"\x01\x14", b"\x01\x14\x00", b"\x01\x14\x00\x00\x00", b"\xff" * 9]
)
def test_what_is_malformed(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_record(value)


@SETTINGS
@given(st.binary(max_size=64))
def test_any_bytes(value: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_record(value)


def test_records_without_fields() -> None:
    assert encode_record(NoOpRecord(), 0) == b"\x01\x14\x00\x00"
    with pytest.raises(ProtocolError):
        encode_record(TopicRecord(name="x", topic_id=b"short"), 0)
