"""The requests of transactions: InitProducerId, AddPartitionsToTxn, TxnOffsetCommit, EndTxn."""

from collections.abc import Sequence
from typing import Final

from moldau.client.connection import Connection
from moldau.client.errors import KafkaError
from moldau.client.leaders import by_topic
from moldau.client.outbox_events import NOBODY, OutboxProducer
from moldau.client.producer_settings import ProducerSettings
from moldau.client.transaction_events import (
    AskEnd,
    AskGroup,
    AskIdentity,
    AskOffsets,
    AskPartitions,
    CoordinatorQuestion,
    Replied,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

FEATURE: Final = "transaction.version"
IMPLICIT_SINCE: Final = 2
"""From this level on brokers take partitions into transactions themselves (KIP-890)."""
INT32_MAX: Final = (1 << 31) - 1
TWO_PHASE_SINCE: Final = 6
"""InitProducerId by which transactions can be prepared."""
END_BEFORE_V2: Final = 4
OFFSETS_BEFORE_V2: Final = 4
OFFSETS_BY_NAME: Final = 5
"""TxnOffsetCommit: later versions name topics by ids, which a user may not know any more."""
PARTITIONS_OF_CLIENTS: Final = 3
"""AddPartitionsToTxn: later versions are for brokers."""


async def ask(
    connection: Connection,
    question: CoordinatorQuestion,
    settings: ProducerSettings,
    *,
    is_v2: bool,
) -> Replied:
    """Ask a coordinator once; `KafkaError` if it does not know the request."""
    transactional_id = settings.transactional_id
    assert transactional_id is not None
    match question:
        case AskIdentity():
            return await _ask_identity(connection, question, settings)
        case AskPartitions(identity, places):
            return await _ask_partitions(connection, transactional_id, identity, places)
        case AskGroup(identity, group_id):
            group_request = AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                group_id=group_id,
            )
            added = await connection.call(group_request, AddOffsetsToTxnResponse)
            return Replied([added.error_code])
        case AskOffsets():
            return await _ask_offsets(connection, transactional_id, question, is_v2=is_v2)
        case AskEnd(identity, is_commit):
            end_request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                committed=is_commit,
            )
            version = connection.version_of(EndTxnRequest)
            if not is_v2:
                version = min(version, END_BEFORE_V2)
            ended = await connection.call(end_request, EndTxnResponse, version)
            return Replied([ended.error_code], _identity(ended.producer_id, ended.producer_epoch))


async def _ask_identity(
    connection: Connection, question: AskIdentity, settings: ProducerSettings
) -> Replied:
    is_two_phase = settings.transaction_two_phase_commit_enable
    wants_newest = is_two_phase or question.keep_prepared
    version = connection.version_of(InitProducerIdRequest, may_be_unstable=wants_newest)
    if wants_newest and version < TWO_PHASE_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"InitProducerId at {connection.address}",
            "two-phase commit needs version 6: on Apache Kafka 4, set "
            "unstable.api.versions.enable=true and transaction.two.phase.commit.enable=true there",
        )
    request = InitProducerIdRequest(
        transactional_id=settings.transactional_id,
        transaction_timeout_ms=INT32_MAX if is_two_phase else settings.transaction_timeout_ms,
        producer_id=question.identity.producer_id,
        producer_epoch=question.identity.epoch,
        enable2_pc=is_two_phase,
        keep_prepared_txn=question.keep_prepared,
    )
    answer = await connection.call(request, InitProducerIdResponse, version)
    return Replied(
        [answer.error_code],
        _identity(answer.producer_id, answer.producer_epoch),
        _identity(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch),
    )


async def _ask_partitions(
    connection: Connection,
    transactional_id: str,
    identity: OutboxProducer,
    places: Sequence[tuple[str, int]],
) -> Replied:
    topics: dict[str, list[int]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )
    version = min(connection.version_of(AddPartitionsToTxnRequest), PARTITIONS_OF_CLIENTS)
    answer = await connection.call(request, AddPartitionsToTxnResponse, version)
    return Replied(
        [
            row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        ]
    )


async def _ask_offsets(
    connection: Connection, transactional_id: str, question: AskOffsets, *, is_v2: bool
) -> Replied:
    group = question.group
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=question.identity.producer_id,
        producer_epoch=question.identity.epoch,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        committed_metadata=offset.metadata,
                    )
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in by_topic(question.offsets).items()
        ],
    )
    version = connection.version_of(TxnOffsetCommitRequest)
    version = min(version, OFFSETS_BY_NAME if is_v2 else OFFSETS_BEFORE_V2)
    answer = await connection.call(request, TxnOffsetCommitResponse, version)
    return Replied([row.error_code for topic in answer.topics for row in topic.partitions])


def _identity(producer_id: int, epoch: int) -> OutboxProducer | None:
    found = OutboxProducer(producer_id, epoch)
    return None if producer_id == NOBODY.producer_id else found
