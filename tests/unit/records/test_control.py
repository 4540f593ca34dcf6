import struct

import pytest

from moldau._native.records import Record, read_batches
from moldau.kernel.errors import InvalidRecordError
from moldau.protocol.stored.control_records import (
    Endpoint,
    EndTxnMarker,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from moldau.records.batch import read_records
from moldau.records.control import (
    ControlRecord,
    ControlType,
    build_end_transaction,
    build_quorum_batch,
    read_control_record,
)


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction(commit: bool) -> None:
    data = build_end_transaction(
        commit=commit,
        coordinator_epoch=12,
        producer_id=900,
        producer_epoch=4,
        timestamp=1_700_000_000_000,
        offset=55,
        leader_epoch=6,
    )
    [batch] = read_batches(data)
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (900, 4, -1)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (55, 55, 6)
    [record] = read_records(data, batch)
    assert (record.offset, record.timestamp) == (55, 1_700_000_000_000)
    # Version and type; version and coordinator epoch: as Kafka has them.
    assert record.key == (b"\0\0\0\1" if commit else b"\0\0\0\0")
    assert record.value == b"\0\0\0\0\0\x0c"
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    assert read_control_record(record) == ControlRecord(kind, EndTxnMarker(coordinator_epoch=12))


def test_the_records_of_the_quorum() -> None:
    directory = bytes(range(16))
    values = [
        LeaderChangeMessage(
            version=1,
            leader_id=3,
            voters=[LeaderChangeMessageVoter(voter_id=3, voter_directory_id=directory)],
            granting_voters=[LeaderChangeMessageVoter(voter_id=4, voter_directory_id=directory)],
        ),
        LeaderChangeMessage(leader_id=3, voters=[LeaderChangeMessageVoter(voter_id=3)]),
        SnapshotHeaderRecord(last_contained_log_timestamp=1_700_000_000_000),
        KRaftVersionRecord(kraft_version=1),
        VotersRecord(
            voters=[
                VotersRecordVoter(
                    voter_id=3,
                    voter_directory_id=directory,
                    endpoints=[Endpoint(name="CONTROLLER", host="localhost", port=9093)],
                    kraft_version_feature=KRaftVersionFeature(max_supported_version=1),
                )
            ]
        ),
        SnapshotFooterRecord(),
    ]
    data = build_quorum_batch(values, timestamp=5, base_offset=20, leader_epoch=2)
    [batch] = read_batches(data)
    assert batch.is_control
    assert not batch.is_transactional
    assert batch.leader_epoch == 2
    records = read_records(data, batch)
    assert [record.offset for record in records] == list(range(20, 26))
    control = [read_control_record(record) for record in records]
    assert [record.type for record in control] == [2, 2, 3, 5, 6, 4]
    # What was a list comes back as a tuple, in every depth.
    assert [repr(record.value) for record in control] == [
        repr(value).replace("[", "(").replace("]", ",)") for value in values
    ]


def test_what_is_newer_than_we_are() -> None:
    marker = Record(0, 0, b"\0\5\0\1more", b"\0\x09\0\0\0\x07more")
    assert read_control_record(marker) == ControlRecord(1, EndTxnMarker(coordinator_epoch=7))
    assert read_control_record(Record(0, 0, b"\0\0\0\x63", None)) == ControlRecord(99, None)
    assert read_control_record(Record(0, 0, b"\0\0\xff\xff", b"")) == ControlRecord(-1, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\1"),
        (b"", b"\0\0\0\0\0\1"),
        (b"\0\0\0", b"\0\0\0\0\0\1"),
        (struct.pack(">hh", -1, 1), b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0"),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\1"),
        (b"\0\0\0\2", b"\0\0\0\0"),
        (b"\0\0\0\6", b"\0\0\xff\xff\xff\xff\x0f"),
    ],
)
def test_malformed_control_records(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="the control record at 31"):
        read_control_record(Record(31, 0, key, value))
