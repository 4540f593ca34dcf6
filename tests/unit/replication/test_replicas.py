from unittest.mock import Mock

import pytest

from moldau.kernel.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from moldau.log.appender import Appended
from moldau.log.config import Durability
from moldau.log.errors import AppendError, StorageFullError
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import validate
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import LogWriter
from moldau.replication.replicas import Replicas
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.log.logs import TestLog, batch_of

P = TopicPartition("t", 0)
ID = TopicId(b"t" * 16)


class Waiter:
    """Waits to write or to read."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def committed(self, _) -> None:
        self.heard.append("committed")

    def lost(self, _, error) -> None:
        self.heard.append(error.code)

    def wake(self, _) -> None:
        self.heard.append("woken")


def led(log_writer: LogWriter | None = None, **options) -> tuple[Replicas, TestLog]:
    writer = log_writer or Mock(spec=LogWriter)
    replicas = Replicas(1, lambda topic, _: topic == "known", writer)
    log = TestLog(MemoryDisk(), durability=options.pop("durability", Durability.FSYNC))
    replicas.lead(P, ID, log.log, LeaderEpoch(3), **options)
    return replicas, log


def code_of(replicas: Replicas, partition: tuple[str, int], epoch: int = -1) -> ErrorCode:
    with pytest.raises(ReplicaError) as error:
        replicas.find_leader(partition, epoch)
    return error.value.code


def test_who_leads():
    replicas, log = led()
    assert replicas.find_leader(("t", 0)).log is log.log
    assert replicas.find_leader(P, 3).partition == P
    assert code_of(replicas, P, 2) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(replicas, P, 4) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code_of(replicas, ("t", 1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(replicas, ("known", 0)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    replicas.offline(P)
    assert code_of(replicas, P) == ErrorCode.KAFKA_STORAGE_ERROR
    replicas.remove(P)
    assert code_of(replicas, P) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(replicas) == 0


def test_a_lone_replica_commits_what_it_has_stored():
    replicas, log = led()
    replica = replicas.get(P)
    writer, reader = Waiter(), Waiter()
    log.append(batch_of(2))
    replica.wait_committed(Offset(2), writer)
    replica.watch(reader)
    log.log.write()
    replicas.note_durable(P, log.log)
    assert (log.log.high_watermark, writer.heard, reader.heard) == (0, [], [])
    log.sync()
    replicas.note_durable(P, log.log)
    assert (log.log.high_watermark, writer.heard, reader.heard) == (2, ["committed"], ["woken"])
    replicas.note_durable(P, log.log)
    replica.unwatch(reader)
    log.add()
    replicas.note_durable(P, log.log)
    assert (writer.heard, reader.heard) == (["committed"], ["woken"])


def test_leading_makes_visible_what_is_stored():
    log = TestLog(MemoryDisk())
    log.append(batch_of(3))
    log.log.write()
    log.sync()
    replicas = Replicas(1, lambda *_: True, Mock(spec=LogWriter))
    replicas.lead(P, ID, log.log, LeaderEpoch(9))
    assert log.log.high_watermark == 3
    assert log.log.end_offset_for(LeaderEpoch(9)).end_offset == 3


def test_an_empty_log_notes_no_epoch():
    _, log = led()
    assert log.log.latest_epoch is None, "that would be a file for each partition"


def test_an_append_is_told_once_it_is_committed_and_one_that_is_repeated_at_once():
    replicas, log = led(durability=Durability.PAGE_CACHE)
    replica = replicas.get(P)
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first, again, again_later = Waiter(), Waiter(), Waiter()

    def append(waiter: Waiter) -> Appended:
        data = batch_of(2, **producer)
        return replica.append(data, validate(data), log.now, waiter)

    assert append(first)[:2] == (0, 1)
    assert append(again).is_duplicate
    assert (first.heard, again.heard) == ([], [])
    log.log.write()
    replicas.note_durable(P, log.log)
    assert (first.heard, again.heard) == (["committed"], ["committed"])
    assert append(again_later).is_duplicate
    assert again_later.heard == ["committed"]


def test_nothing_waits_for_what_is_refused_or_has_no_room():
    log_writer = Mock(spec=LogWriter)
    replicas, log = led(log_writer=log_writer)
    replica, waiter = replicas.get(P), Waiter()
    first = batch_of(producer_id=7, producer_epoch=0, base_sequence=5)
    gap = batch_of(producer_id=7, producer_epoch=0, base_sequence=9)
    replica.append(first, validate(first), log.now)
    with pytest.raises(AppendError):
        replica.append(gap, validate(gap), log.now, waiter)
    log_writer.stage.side_effect = StorageFullError("full")
    plain = batch_of()
    with pytest.raises(StorageFullError):
        replica.append(plain, validate(plain), log.now, waiter)
    assert log.log.log_end == 1
    log.log.write()
    log.sync()
    replicas.note_durable(P, log.log)
    assert (log.log.high_watermark, waiter.heard) == (1, [])


def test_what_the_broker_makes_itself_needs_replicas_in_sync_and_is_written_soon():
    log_writer = Mock(spec=LogWriter)
    replicas, log = led(log_writer=log_writer, min_in_sync=2, assigned=(1, 2), in_sync=(1, 2))
    replica = replicas.get(P)
    assert replica.append_own(bytes(batch_of(3)), log.now).last_offset == 2
    log_writer.write_soon.assert_called_once_with()
    replica.configure(2, (1, 2), (1,))
    with pytest.raises(ReplicaError, match="1 replicas of t-0 are in sync, acks=all needs 2"):
        replica.append_own(bytes(batch_of()), log.now)
    assert log.log.log_end == 3


def test_only_what_was_taken_back_is_lost():
    replicas, log = led(durability=Durability.FSYNC)
    replica = replicas.get(P)
    first, second = Waiter(), Waiter()
    log.append(batch_of())
    replica.wait_committed(Offset(1), first)
    log.log.write()
    replica.wait_committed(Offset(2), second)
    replicas.failed(P, StorageFullError("full"))
    assert (first.heard, second.heard) == ([], [ErrorCode.KAFKA_STORAGE_ERROR])
    log.sync()
    replicas.note_durable(P, log.log)
    assert first.heard == ["committed"]


def test_a_log_that_was_replaced_is_not_heard():
    replicas, _ = led()
    other = TestLog(MemoryDisk())
    other.add()
    replicas.note_durable(P, other.log)
    assert replicas.get(P).log.high_watermark == 0


def test_another_topic_of_the_same_name_is_another_replica():
    replicas, log = led()
    waiter = Waiter()
    replicas.get(P).wait_committed(Offset(1), waiter)
    replicas.lead(P, TopicId(b"u" * 16), log.log, LeaderEpoch(0))
    assert waiter.heard == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert replicas.get(P).leader_epoch == 0


def test_leaders_are_found_as_a_request_names_them():
    log = TestLog(MemoryDisk())
    replicas = Replicas(1, lambda *_: True, Mock(spec=LogWriter), frozenset({"__internal"}))
    replica = replicas.lead(P, ID, log.log, LeaderEpoch(1))
    index = (0).to_bytes(4)
    assert replicas.leaders == {b"t" + index: replica, ID + index: replica}
    internal = TestLog(MemoryDisk())
    replicas.lead(TopicPartition("__internal", 0), TopicId(b"j" * 16), internal.log, LeaderEpoch(1))
    replicas.lead(P, ID, log.log, LeaderEpoch(2))
    assert len(replicas.leaders) == 2
    replicas.offline(P)
    assert not replicas.leaders
    replicas.lead(P, ID, log.log, LeaderEpoch(3))
    renewed = TopicId(b"u" * 16)
    again = replicas.lead(P, renewed, TestLog(MemoryDisk()).log, LeaderEpoch(0))
    assert replicas.leaders == {b"t" + index: again, renewed + index: again}
    replicas.remove(P)
    assert not replicas.leaders
