"""Offsets are committed: at once, or with the end of a transaction."""

from typing import TYPE_CHECKING, Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.commands import CommitOffsets, CommitTransactionalOffsets
from moldau.groups.group import PartitionCheck
from moldau.groups.offsets.group_offset import NEVER, commit_record
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import ProducerEpoch, ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.stored.offsets import OffsetCommitValue

if TYPE_CHECKING:
    from moldau.coordination.stored_record import StoredRecord

_BY_BROKER: Final = -1
"""A time that the client leaves to the broker."""


def commit_offsets(
    shelf: GroupShelf, asked: CommitOffsets, _ticket: Ticket[OffsetCommitResponse], now: Instant
) -> Decision[OffsetCommitResponse]:
    """Decide a commit for partitions that exist; its topics have names and ids."""
    request = asked.request
    group_id = request.group_id
    check = _check(shelf, asked)
    group = shelf.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        group.hear_of(request.member_id, now)
    wall_ms = now.wall_ms
    retention_ms = request.retention_time_ms
    expire_ms = NEVER if retention_ms == _BY_BROKER else wall_ms + retention_ms
    metadata_max = shelf.context.settings.offset_metadata_max_bytes
    records: list[StoredRecord] = []
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if _is_longer(metadata, metadata_max):
                rows.append(_refused(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            if check is not None:
                check(topic.name, topic.topic_id, index)
            sent_ms = partition.commit_timestamp
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=wall_ms if sent_ms == _BY_BROKER else sent_ms,
                expire_timestamp=expire_ms,
                topic_id=topic.topic_id,
            )
            records.append(commit_record(group_id, topic.name, index, value))
            rows.append(OffsetCommitResponsePartition(partition_index=index))
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
    return Decision(records, OffsetCommitResponse(topics=topics), is_pure=True)


def _check(shelf: GroupShelf, asked: CommitOffsets) -> PartitionCheck | None:
    request = asked.request
    epoch = request.generation_id_or_member_epoch
    group = shelf.groups.get(request.group_id)
    if group is not None:
        return group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            epoch,
            is_transactional=False,
            version=asked.version,
        )
    # A client that is in no group may commit for one that is not there: it is made then.
    if epoch >= 0:
        code = told_code(ErrorReader.OFFSET_COMMIT, ErrorCode.GROUP_ID_NOT_FOUND, asked.version)
        raise Refusal(code, f"There is no group {request.group_id}.")
    return None


def commit_transactional_offsets(
    shelf: GroupShelf,
    asked: CommitTransactionalOffsets,
    _ticket: Ticket[TxnOffsetCommitResponse],
    now: Instant,
) -> Decision[TxnOffsetCommitResponse]:
    """Decide a commit that counts when its producer's transaction is committed."""
    request = asked.request
    group_id = request.group_id
    check = _check_transactional(shelf, asked)
    metadata_max = shelf.context.settings.offset_metadata_max_bytes
    records: list[StoredRecord] = []
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            row = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
            rows.append(row)
            metadata = partition.committed_metadata or ""
            if _is_longer(metadata, metadata_max):
                row.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            if check is not None:
                check(topic.name, topic.topic_id, partition.partition_index)
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=now.wall_ms,
                topic_id=topic.topic_id,
            )
            records.append(commit_record(group_id, topic.name, partition.partition_index, value))
        topics.append(
            TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
    producer = ProducerIdentity(
        ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)
    )
    response = TxnOffsetCommitResponse(topics=topics)
    return Decision(records, response, producer=producer, is_pure=True)


def _check_transactional(
    shelf: GroupShelf, asked: CommitTransactionalOffsets
) -> PartitionCheck | None:
    request = asked.request
    epoch = request.generation_id_or_member_epoch
    group = shelf.groups.get(request.group_id)
    if group is None:
        if epoch >= 0:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {request.group_id}.")
        return None
    return group.check_offset_commit(
        request.member_id,
        request.group_instance_id,
        epoch,
        is_transactional=True,
        version=asked.version,
    )


def _is_longer(text: str, limit: int) -> bool:
    """Whether a text has more than so many of Java's characters, of which some take two."""
    length = len(text)
    if length > limit or length * 2 <= limit:
        return length > limit
    return len(text.encode("utf-16-le", "surrogatepass")) > limit * 2


def _refused(index: int, code: ErrorCode) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=code)
