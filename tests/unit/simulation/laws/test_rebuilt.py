"""Coordinators that know something else than what their records say."""

from typing import TYPE_CHECKING, cast

import pytest

from moldau._native.records import Batch, Record, read_batches
from moldau.coordination.producer import NO_PRODUCER
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.machine import GroupMachine
from moldau.groups.offsets.group_offset import commit_record
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.records.batch import TRANSACTIONAL, build_batch
from moldau.records.control import build_end_transaction
from moldau.simulation.laws.rebuilt import check_rebuilt
from moldau.simulation.laws.violation import LawViolation
from moldau.transactions.machine import TransactionMachine
from moldau.transactions.state import TransactionState

if TYPE_CHECKING:
    from moldau.groups.context import GroupContext
    from moldau.transactions.context import TransactionContext

Stored = list[tuple[bytes, Batch]]
PRODUCER = ProducerId(9)


def opened(data: bytes) -> Stored:
    return [(data, batch) for batch in read_batches(data)]


def stored(record: StoredRecord, offset: int, *, attributes: int = 0) -> Stored:
    batch = [Record(offset, 0, *record.encode())]
    return opened(build_batch(batch, attributes=attributes, producer_id=PRODUCER))


def commit(offset: int) -> StoredRecord:
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)
    return commit_record("g", "t", 0, value)


def marker(*, commit: bool) -> Stored:
    data = build_end_transaction(
        commit=commit, coordinator_epoch=0, producer_id=PRODUCER, producer_epoch=0, timestamp=0
    )
    return opened(data)


def groups(*commits: int) -> GroupMachine:
    machine = GroupMachine(cast("GroupContext", None))
    for number, offset in enumerate(commits):
        key, value, *_ = commit(offset)
        machine.replay(Offset(number), NO_PRODUCER, key, value)
    return machine


@pytest.mark.parametrize("is_commit", [False, True])
def test_offsets_are_those_that_count(is_commit: bool) -> None:
    batches = [
        *stored(commit(3), 0),
        *stored(commit(5), 1, attributes=TRANSACTIONAL),
        *marker(commit=is_commit),
    ]
    known, other = (5, 3) if is_commit else (3, 5)
    check_rebuilt(groups(known), batches)
    with pytest.raises(LawViolation, match=f"it takes {other} for .* say {known}"):
        check_rebuilt(groups(other), batches)


def test_an_offset_that_was_removed_does_not_count() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    batches = [*stored(commit(3), 0), *stored(StoredRecord(key, None), 1)]
    check_rebuilt(groups(), batches)


def test_a_forgotten_offset_is_told() -> None:
    with pytest.raises(LawViolation, match="it takes None for"):
        check_rebuilt(groups(), stored(commit(3), 0))


def test_a_transaction_is_in_the_state_that_is_recorded() -> None:
    key = TransactionLogKey(transactional_id="t")

    def value(state: TransactionState) -> TransactionLogValue:
        return TransactionLogValue(
            producer_id=PRODUCER,
            producer_epoch=0,
            transaction_timeout_ms=1000,
            transaction_status=state,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=0,
            transaction_start_timestamp_ms=0,
        )

    machine = TransactionMachine(cast("TransactionContext", None))
    machine.replay(Offset(0), NO_PRODUCER, key, value(TransactionState.ONGOING))
    check_rebuilt(machine, stored(StoredRecord(key, value(TransactionState.ONGOING)), 0))
    with pytest.raises(LawViolation, match="it has t in"):
        check_rebuilt(machine, stored(StoredRecord(key, value(TransactionState.EMPTY)), 0))
