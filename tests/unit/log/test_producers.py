from typing import Any

import pytest

from moldau._native.records import read_batches
from moldau.kernel.ids import Offset, Position
from moldau.log.errors import ProducerError
from moldau.log.markers import Marker
from moldau.log.producers import Origin, Producers
from moldau.log.unstable import CompletedTransaction
from moldau.protocol.errors import ErrorCode
from tests.unit.log.batches import data_batch, data_batch_bytes, marker_bytes

SEQUENCE_MAX = 2**31 - 1


class Partition:
    """Offsets assigned one after the other, as the log does it."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end_offset = 0

    def append(self, *args: Any, origin: Origin = Origin.CLIENT, **fields: Any) -> Any:
        batch = data_batch(*args, offset=self.end_offset, **fields)
        duplicate = self.producers.check(batch, origin)
        if duplicate is None:
            position = Position(10 * batch.base_offset)
            self.producers.apply(batch, Offset(0), position)
            self.end_offset = batch.last_offset + 1
        return duplicate

    def end(
        self, *args: Any, version: int = 1, check: bool = True, **fields: Any
    ) -> CompletedTransaction | None:
        data = marker_bytes(*args, offset=self.end_offset, **fields)
        (batch,) = read_batches(data)
        if check:
            marker = Marker(fields.get("abort", False), fields.get("coordinator_epoch", 0), 1000)
            self.producers.check_marker(batch, marker, transaction_version=version)
        self.end_offset += 1
        return self.producers.replay(batch, data, Offset(0), Position(0))

    def refused(self, *args: Any, **fields: Any) -> ErrorCode:
        with pytest.raises(ProducerError) as caught:
            self.append(*args, **fields)
        return caught.value.code

    def marker_refused(self, *args: Any, **fields: Any) -> ErrorCode:
        with pytest.raises(ProducerError) as caught:
            self.end(*args, **fields)
        return caught.value.code


def test_sequences_follow_each_other() -> None:
    log = Partition()
    log.append(1, 0, 0, count=3)
    log.append(1, 0, 3)
    assert log.refused(1, 0, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.refused(1, 0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(1, 0, 4)
    assert log.producers.states[1].next_sequence == 5


def test_an_error_says_what_is_wrong() -> None:
    log = Partition()
    log.append(7, 3, 0)
    with pytest.raises(
        ProducerError, match="producer 7 sent sequence number 9 of epoch 3, expected was 1"
    ):
        log.append(7, 3, 9)
    with pytest.raises(ProducerError, match="producer 7 wrote with epoch 2, but epoch 3 was here"):
        log.append(7, 2, 1)


def test_an_unknown_producer_begins_anywhere() -> None:
    log = Partition()
    log.append(1, 5, 1234)
    log.append(1, 5, 1235)


def test_sequences_wrap() -> None:
    log = Partition()
    log.append(1, 0, SEQUENCE_MAX - 1, count=4)  # MAX - 1, MAX, 0, 1
    assert log.append(1, 0, SEQUENCE_MAX - 1, count=4).first_offset == 0
    log.append(1, 0, 2)
    log = Partition()
    log.append(1, 0, SEQUENCE_MAX)
    assert log.refused(1, 0, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(1, 0, 0)


def test_the_last_five_batches_are_recognized() -> None:
    log = Partition()
    for sequence in range(0, 12, 2):
        assert log.append(1, 0, sequence, count=2, timestamp=100 + sequence) is None
    for sequence in range(2, 12, 2):
        duplicate = log.append(1, 0, sequence, count=2)
        assert (duplicate.first_offset, duplicate.last_offset) == (sequence, sequence + 1)
        assert duplicate.timestamp == 100 + sequence
    assert log.refused(1, 0, 0, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.refused(1, 0, 10, count=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.refused(1, 0, 9, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 12


def test_epochs_fence() -> None:
    log = Partition()
    log.append(1, 4, 0)
    assert log.refused(1, 3, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refused(1, 3, 1, origin=Origin.COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refused(1, 5, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(1, 5, 0)
    assert log.append(1, 5, 0) is not None, "a duplicate in the new epoch"
    assert log.refused(1, 4, 0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_follower_takes_what_its_leader_took() -> None:
    log = Partition()
    log.append(1, 4, 0)
    assert log.append(1, 4, 7, origin=Origin.REPLICATION) is None
    assert log.append(1, 4, 7, origin=Origin.REPLICATION) is None
    assert log.append(1, 3, 0, origin=Origin.REPLICATION) is None
    assert log.producers.states[1].producer_epoch == 3


def test_coordinators_have_no_sequences() -> None:
    log = Partition()
    for _ in range(3):
        log.append(1, 0, -1, transactional=True, origin=Origin.COORDINATOR, count=2)
    assert log.producers.states[1].next_sequence == 0
    log.append(1, 0, 0, transactional=True)


def test_a_transaction_commits() -> None:
    log = Partition()
    log.append(1, 0, 0)
    log.append(1, 0, 1, transactional=True)
    unstable = log.producers.first_unstable
    assert unstable is not None
    assert (unstable.first_offset, unstable.position, unstable.segment_base_offset) == (1, 10, 0)
    assert log.refused(1, 0, 2) is ErrorCode.INVALID_TXN_STATE
    log.append(1, 0, 2, transactional=True)
    completed = log.end(1, 0, coordinator_epoch=3, timestamp=7)
    assert completed == CompletedTransaction(1, 1, 3, 4, is_abort=False)
    state = log.producers.states[1]
    assert (state.transaction_first_offset, state.coordinator_epoch) == (-1, 3)
    assert state.last_timestamp == 7
    assert log.producers.first_open is None
    assert log.producers.first_unstable is unstable, "the marker is not replicated yet"
    log.producers.note_committed(Offset(3))
    assert log.producers.first_unstable is unstable
    log.producers.note_committed(Offset(4))
    assert log.producers.first_unstable is None
    log.append(1, 0, 3)


def test_interleaved_transactions() -> None:
    log = Partition()
    for producer in (1, 2, 3):
        log.append(producer, 0, 0, transactional=True)  # 0, 1, 2
    assert log.end(2, abort=True) == CompletedTransaction(2, 1, 3, 0, is_abort=True)
    assert log.end(1) == CompletedTransaction(1, 0, 4, 2, is_abort=False)
    first = log.producers.first_unstable
    assert first is not None
    assert first.first_offset == 0
    log.producers.note_committed(Offset(4))  # passes 2's marker only
    assert log.producers.first_unstable is first
    log.producers.note_committed(Offset(5))
    third = log.producers.first_unstable
    assert third is not None
    assert third is log.producers.first_open
    assert third.first_offset == 2
    assert log.end(3) == CompletedTransaction(3, 2, 5, 6, is_abort=False)


def test_a_marker_without_data_ends_nothing() -> None:
    log = Partition()
    assert log.end(9, 4, coordinator_epoch=2) is None
    state = log.producers.states[9]
    assert (state.producer_epoch, state.coordinator_epoch, state.batches) == (4, 2, [])
    assert log.refused(9, 4, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(9, 4, 0)


def test_late_markers_are_fenced() -> None:
    log = Partition()
    log.append(1, 5, 0, transactional=True)
    assert log.marker_refused(1, 4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.marker_refused(1, 4, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    # Since version 2 a marker has a larger epoch than its data.
    assert log.marker_refused(1, 5, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.end(1, 6, version=2, coordinator_epoch=8) is not None
    assert log.end(1, 6, version=2, coordinator_epoch=8) is None, "sent again"
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.marker_refused(1, 6, coordinator_epoch=7) is fenced
    log.append(1, 6, 0)


def test_a_marker_at_the_largest_epoch() -> None:
    log = Partition()
    log.append(1, 32767, 0, transactional=True)
    assert log.end(1, 32767, version=2) is not None


def test_a_marker_keeps_sequences_within_an_epoch() -> None:
    log = Partition()
    log.append(1, 0, 0, transactional=True, count=3)
    log.end(1, 0)
    log.append(1, 0, 3, transactional=True)
    log.end(1, 1, version=2)
    log.append(1, 1, 0, transactional=True)


def test_replay_skips_what_is_not_of_a_producer() -> None:
    producers = Producers()
    anonymous = data_batch_bytes(-1, -1, -1)
    for data in (anonymous, marker_bytes(-1, -1, kind=2), marker_bytes(1, kind=9)):
        (batch,) = read_batches(data)
        assert producers.replay(batch, data, Offset(0), Position(0)) is None
    assert not producers.states


def test_idle_producers_expire_but_not_in_a_transaction() -> None:
    log = Partition()
    log.append(1, 0, 0, timestamp=100)
    log.append(2, 0, 0, timestamp=150)
    log.append(3, 0, 0, timestamp=100, transactional=True)
    assert log.producers.expire(199, 100) == 0
    assert log.producers.expire(200, 100) == 1
    assert sorted(log.producers.states) == [2, 3]
    assert log.producers.expire(10**6, 100) == 1
    assert sorted(log.producers.states) == [3]
