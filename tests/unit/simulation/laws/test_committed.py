"""The laws of what is committed, and of what coordinators record."""

from collections.abc import Callable, Sequence

import pytest

from moldau._native.records import Record
from moldau.client.member_metadata import encode_assignment
from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.ids import TopicPartition
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from moldau.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.records.batch import TRANSACTIONAL
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.laws.committed import CommittedLog
from moldau.simulation.laws.coordinated import PartitionOwners, TransactionStates
from moldau.simulation.laws.violation import LawViolation
from moldau.transactions.state import TransactionState
from tests.unit.log.logs import TestLog, batch_of

P = TopicPartition("orders", 0)
TOPIC_ID = bytes(15) + b"\x07"


class Followed:
    """A log, and what was followed of it."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log = TestLog(self.disk)
        self.committed = CommittedLog(P)

    def read_file(self, path: str, position: int) -> bytes:
        return self.disk.read(path, position, self.disk.size(path) - position)

    def follow(self) -> None:
        self.committed.follow(self.log.log, self.read_file)

    def check_whole(self) -> None:
        self.committed.check_whole(self.log.log, self.read_file)


def test_what_is_committed_may_only_grow() -> None:
    followed = Followed()
    followed.log.add(3)
    followed.follow()
    followed.log.add(2)
    followed.follow()
    assert followed.committed.end == 5
    followed.check_whole()
    followed.log.reopen()
    shrunk = TestLog(MemoryDisk())
    shrunk.add(3)
    with pytest.raises(LawViolation, match="committed records: orders-0 ends at 3: 5 was commit"):
        followed.committed.follow(shrunk.log, followed.read_file)


def test_a_committed_batch_that_changes_is_found() -> None:
    followed = Followed()
    followed.log.add(3)
    followed.follow()
    other = Followed()
    other.log.add(3, value=b"other")
    with pytest.raises(LawViolation, match=r"has .* at 0, where"):
        followed.committed.check_whole(other.log.log, other.read_file)


def test_a_committed_batch_that_cannot_be_read_is_found() -> None:
    followed = Followed()
    followed.log.add(3)
    path = followed.log.log.segments[0].path
    data = bytearray(followed.read_file(path, 0))
    data[-1] ^= 1
    with pytest.raises(LawViolation, match="orders-0 cannot be read: batch at 0"):
        followed.committed.follow(followed.log.log, lambda _, position: data[position:])


def test_deleted_records_may_go() -> None:
    followed = Followed()
    for _ in range(3):
        followed.log.add()
    followed.follow()
    followed.log.log.delete_records(2)
    followed.check_whole()
    followed.check_whole()


def transactional(followed: Followed, epoch: int, sequence: int = 0) -> None:
    followed.log.append(
        batch_of(
            attributes=TRANSACTIONAL, producer_id=9, producer_epoch=epoch, base_sequence=sequence
        )
    )
    followed.log.commit()


def test_a_transaction_has_one_marker() -> None:
    followed = Followed()
    for epoch in (0, 2):
        transactional(followed, epoch)
        followed.log.end_transaction(producer_id=9, producer_epoch=epoch + 1)
    followed.follow()
    followed.log.end_transaction(producer_id=9, producer_epoch=3)
    with pytest.raises(LawViolation, match="one marker"):
        followed.follow()


def test_records_of_a_fenced_epoch_are_found() -> None:
    followed, late = Followed(), Followed()
    transactional(followed, 5)
    followed.follow()
    followed.log.end_transaction(producer_id=9, producer_epoch=6)
    followed.follow()
    for _ in range(2):
        late.log.add()
    transactional(late, 4)
    with pytest.raises(LawViolation, match="fenced producer"):
        followed.committed.follow(late.log.log, late.read_file)


# Coordinators.


def recorded(*stored: StoredRecord) -> list[Record]:
    return [Record(offset, 0, *each.encode()) for offset, each in enumerate(stored)]


def state(state: TransactionState, epoch: int = 0) -> StoredRecord:
    value = TransactionLogValue(
        producer_id=9,
        producer_epoch=epoch,
        transaction_timeout_ms=1000,
        transaction_status=state,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=0,
        transaction_start_timestamp_ms=0,
    )
    return StoredRecord(TransactionLogKey(transactional_id="t"), value)


def test_states_of_transactions_follow_the_table() -> None:
    law = TransactionStates()
    law(recorded(state(TransactionState.EMPTY), state(TransactionState.ONGOING)))
    law(recorded(StoredRecord(TransactionLogKey(transactional_id="t"), None)))
    law(recorded(state(TransactionState.ONGOING), state(TransactionState.PREPARE_COMMIT)))
    with pytest.raises(LawViolation, match="t goes from PrepareCommit to Ongoing"):
        law(recorded(state(TransactionState.ONGOING)))


def test_epochs_of_producers_do_not_fall() -> None:
    law = TransactionStates()
    law(recorded(state(TransactionState.EMPTY, 3)))
    with pytest.raises(LawViolation, match="t goes from epoch 3 to 2"):
        law(recorded(state(TransactionState.ONGOING, 2)))


def member(name: str, assigned: list[int] | None, revoked: list[int] | None = None) -> StoredRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=name)
    if assigned is None:
        return StoredRecord(key, None)

    def topics(partitions: list[int] | None) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=TOPIC_ID, partitions=partitions or [])]

    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=topics(assigned),
        partitions_pending_revocation=topics(revoked),
    )
    return StoredRecord(key, value)


def two_members_are_assigned_one(law: Callable[[list[Record]], None]) -> None:
    law(recorded(member("a", [0, 1])))
    law(recorded(member("b", [1])))


def one_is_assigned_before_it_is_given_up(law: Callable[[list[Record]], None]) -> None:
    law(recorded(member("a", [0], [1])))
    law(recorded(member("b", [1])))


@pytest.mark.parametrize(
    "broken", [two_members_are_assigned_one, one_is_assigned_before_it_is_given_up]
)
def test_a_partition_has_one_owner(
    broken: Callable[[Callable[[list[Record]], None]], None],
) -> None:
    with pytest.raises(LawViolation, match=r"one owner: a and b of group g have .*-1"):
        broken(PartitionOwners())


def test_a_partition_changes_hands() -> None:
    law = PartitionOwners()
    law(recorded(member("a", [0, 1])))
    law(recorded(member("a", [0], [1])))
    law(recorded(member("a", [0])))
    law(recorded(member("b", [1])))
    # Of one decision, in any order.
    law(recorded(member("b", [0, 1]), member("a", None)))


def test_a_classic_generation_has_one_owner() -> None:
    def generation(*assigned: Sequence[int]) -> StoredRecord:
        members = [
            MemberMetadata(
                member_id="ab"[number],
                client_id="",
                client_host="",
                session_timeout=1,
                subscription=b"",
                assignment=encode_assignment([TopicPartition("t", each) for each in partitions]),
            )
            for number, partitions in enumerate(assigned)
        ]
        value = GroupMetadataValue(
            protocol_type="consumer", generation=1, protocol="range", leader="a", members=members
        )
        return StoredRecord(GroupMetadataKey(group="g"), value)

    law = PartitionOwners()
    law(recorded(generation([0, 1], [2])))
    law(recorded(generation([0], [1, 2])))
    with pytest.raises(LawViolation, match="one owner: a and b of group g have t-1"):
        law(recorded(generation([0, 1], [1, 2])))
