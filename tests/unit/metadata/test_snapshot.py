import pytest

from moldau._native.records import read_batches
from moldau.kernel.errors import CorruptBatchError, InvalidRecordError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT, SnapshotId, find_snapshot_id
from moldau.metadata.batches import decode_batch, in_batches, replayable
from moldau.metadata.bootstrap import (
    bootstrap_file,
    bootstrap_records,
    first_records,
    first_snapshot,
)
from moldau.metadata.snapshot import read_snapshot, write_snapshot
from moldau.protocol.stored.cluster_metadata import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)

VOTERS = VotersRecord(voters=(VotersRecordVoter(voter_id=1, voter_directory_id=bytes(range(16))),))


def test_names() -> None:
    snapshot = SnapshotId(Offset(1234), LeaderEpoch(5))
    assert snapshot.file_name == "00000000000000001234-0000000005.checkpoint"
    assert find_snapshot_id(snapshot.file_name) == snapshot
    for name in (
        "bootstrap.checkpoint",
        "00000000000000001234-0000000005.checkpoint.part",
        "00000000000000001234-0000000005.checkpoint.deleted",
        "1-5.checkpoint",
    ):
        assert find_snapshot_id(name) is None


def test_pieces() -> None:
    records = [TopicRecord(name=f"topic-{n}", topic_id=n.to_bytes(16)) for n in range(1250)]
    control = (KRaftVersionRecord(kraft_version=1), VOTERS)
    pieces = list(
        write_snapshot(
            iter(records), level=33, epoch=5, last_log_timestamp=7, timestamp=8, control=control
        )
    )
    assert len(pieces) == 5
    data = b"".join(pieces)
    batches = read_batches(data)
    assert [batch.base_offset for batch in batches] == [0, 3, 503, 1003, 1253]
    assert {batch.leader_epoch for batch in batches} == {5}
    snapshot = read_snapshot(data)
    assert snapshot.last_log_timestamp == 7
    assert snapshot.control == control
    assert snapshot.records == records


@pytest.mark.parametrize("cut", [0, 1, 80, 90, -1, -75, -80])
def test_a_snapshot_that_is_not_whole(cut: int) -> None:
    data = bootstrap_file(bootstrap_records(33), 5)
    with pytest.raises((InvalidRecordError, CorruptBatchError)):
        read_snapshot(data[:cut])


def test_formatting() -> None:
    data = bootstrap_file(bootstrap_records(30), 5)
    snapshot = read_snapshot(data)
    assert (snapshot.last_log_timestamp, snapshot.control) == (0, ())
    assert snapshot.records == bootstrap_records(30)
    assert FIRST_SNAPSHOT.file_name == "00000000000000000000-0000000000.checkpoint"
    voters = read_snapshot(first_snapshot(VOTERS, 5))
    assert voters.control == (KRaftVersionRecord(kraft_version=1), VOTERS)
    assert voters.records == []
    with pytest.raises(ValueError, match=r"metadata\.version"):
        bootstrap_file([NoOpRecord()], 5)


def test_first_records() -> None:
    records = first_records(bootstrap_records(33))
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    assert first_records(bootstrap_records(12)) == bootstrap_records(12)


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (4, [4]), (5, [5, 1, 1]), (9, [5, 4, 1, 1])]
)
def test_batches(count: int, sizes: list[int]) -> None:
    records = [NoOpRecord() for _ in range(count)]
    assert [len(batch) for batch in in_batches(records, 33, records_max=4)] == sizes
    assert [len(batch) for batch in in_batches(records, 12, records_max=4)] == (
        [count] if count else []
    )


def test_batches_are_made_as_they_are_asked_for() -> None:
    made = []

    def records() -> object:
        for number in range(100):
            made.append(number)
            yield NoOpRecord()

    batches = in_batches(records(), 33, records_max=10)
    next(batches)
    assert len(made) == 11
    assert sum(len(batch) for batch in batches) == 91


def test_control_batches_have_nothing_to_replay() -> None:
    data = bootstrap_file(bootstrap_records(33), 5)
    replayed = [records for _, records in replayable(data)]
    assert replayed == [[], bootstrap_records(33), []]
    assert decode_batch(data, read_batches(data)[1]) == bootstrap_records(33)
