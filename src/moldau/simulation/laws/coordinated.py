"""Laws of what coordinators record: states of transactions, owners of partitions in groups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from moldau._native.records import Record
from moldau.client.member_metadata import decode_assignment
from moldau.coordination.stored_record import RecordTypes, decode_record, record_types
from moldau.protocol.stored import consumer_groups, offsets, transaction_state
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from moldau.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.simulation.laws.violation import LawViolation
from moldau.transactions.state import PREVIOUS, TransactionState

TRANSACTION_TYPES: Final[RecordTypes] = record_types(transaction_state)
GROUP_TYPES: Final[RecordTypes] = record_types(offsets, consumer_groups)

OwnedPartition = tuple[str, int]
"""A topic's name or id and a partition's number."""


class TransactionStates:
    """The states of all transactional ids of one partition of __transaction_state."""

    def __init__(self) -> None:
        self._known: dict[str, TransactionLogValue] = {}

    def __call__(self, records: Sequence[Record]) -> None:
        for record in records:
            decoded = decode_record(TRANSACTION_TYPES, record.key, record.value)
            if decoded is None or not isinstance(key := decoded[0], TransactionLogKey):
                continue
            before = self._known.pop(key.transactional_id, None)
            if isinstance(value := decoded[1], TransactionLogValue):
                self._known[key.transactional_id] = value
                if before is not None:
                    _check_transition(key.transactional_id, before, value)


def _check_transition(
    transactional_id: str, before: TransactionLogValue, after: TransactionLogValue
) -> None:
    was, is_ = (
        TransactionState(before.transaction_status),
        TransactionState(after.transaction_status),
    )
    if was not in PREVIOUS[is_]:
        raise LawViolation(
            "transaction states", f"{transactional_id} goes from {was.shown} to {is_.shown}"
        )
    if before.producer_id == after.producer_id and after.producer_epoch < before.producer_epoch:
        raise LawViolation(
            "producer epochs",
            f"{transactional_id} goes from epoch {before.producer_epoch} to {after.producer_epoch}",
        )


class PartitionOwners:
    """The members that have partitions of groups of either protocol, one each at most."""

    def __init__(self) -> None:
        self._members: dict[str, dict[str, frozenset[OwnedPartition]]] = {}

    def __call__(self, records: Sequence[Record]) -> None:
        changed: dict[str, None] = {}
        for record in records:
            decoded = decode_record(GROUP_TYPES, record.key, record.value)
            if decoded is None:
                continue
            key, value = decoded
            if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
                members = self._members.setdefault(key.group_id, {})
                members.pop(key.member_id, None)
                if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                    members[key.member_id] = frozenset(_partitions_of(value))
                changed[key.group_id] = None
            elif isinstance(value, GroupMetadataValue):
                assert isinstance(key, GroupMetadataKey)
                _check_owners(key.group, _members_of(value))
        for group in changed:
            _check_owners(group, self._members[group])


def _members_of(value: GroupMetadataValue) -> dict[str, frozenset[OwnedPartition]]:
    """Return what the members of a generation have; all of them have the same protocol."""
    return {
        member.member_id: frozenset(decode_assignment(member.assignment))
        for member in value.members
        if member.assignment and value.protocol_type == "consumer"
    }


def _partitions_of(
    value: ConsumerGroupCurrentMemberAssignmentValue,
) -> Iterator[OwnedPartition]:
    for topics in (value.assigned_partitions, value.partitions_pending_revocation):
        for topic in topics:
            for partition in topic.partitions:
                yield topic.topic_id.hex(), partition


def _check_owners(group: str, members: Mapping[str, frozenset[OwnedPartition]]) -> None:
    owners: dict[OwnedPartition, str] = {}
    for member, partitions in members.items():
        for partition in sorted(partitions):
            other = owners.setdefault(partition, member)
            if other != member:
                topic, number = partition
                raise LawViolation(
                    "one owner",
                    f"{other} and {member} of group {group} have {topic}-{number}",
                )
