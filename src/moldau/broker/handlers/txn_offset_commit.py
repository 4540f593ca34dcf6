"""TxnOffsetCommit v0-v6.

v2 leader epochs; v3 flexible, members; v5 adds to the transaction; v6 topic ids instead of names.

Up to v4 the offsets' partition has been added by AddOffsetsToTxn, and that is verified.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.admission import is_admitted
from moldau.broker.coordinators.requests import request_command, submit_for
from moldau.broker.known_partitions import complete, merge, split_known
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.groups.commands import CommitTransactionalOffsets
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.transactions.commands import AddPartitions, VerifyPartitions
from moldau.transactions.transaction import BUMPING

ADDING_SINCE: Final = 5
IDS_SINCE: Final = 6


def handle_txn_offset_commit(
    broker: Broker, call: Call, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | None:
    """Have the group's coordinator keep offsets that count when the transaction is committed."""
    complete(broker.image.topics, request.topics, has_ids=call.version >= IDS_SINCE)
    _Commit(broker, call, request).begin()
    return None


class _Commit:
    """A commit on its way: first to the transaction's coordinator, then to the group's."""

    def __init__(self, broker: Broker, call: Call, request: TxnOffsetCommitRequest) -> None:
        self._broker = broker
        self._call = call
        self._asked = request.topics
        known, unknown = split_known(broker.image.topics, request.topics)
        self._refused = [_refused(topic, code) for topic, code in unknown]
        request.topics = known
        self._request = request

    def begin(self) -> None:
        """Have the transaction's coordinator know of the commit, if it has to."""
        if not self._request.topics:
            self._call.answer(TxnOffsetCommitResponse(topics=self._refused))
            return
        groups = self._broker.coordinators.groups
        index = groups.partition_of(self._request.group_id)
        if index is None:
            self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        if not self._request.group_id:
            self._refuse(ErrorCode.INVALID_GROUP_ID)
            return
        partition = TopicPartition(groups.topic, index)
        if self._is_ongoing(partition) or not self._is_verified:
            self._commit()
            return
        id_ = self._request.transactional_id
        command: AddPartitions | VerifyPartitions
        if self._call.version >= ADDING_SINCE:
            command = AddPartitions(
                id_, self._producer, frozenset({partition}), BUMPING, may_wait=True
            )
        else:
            command = VerifyPartitions(id_, self._producer, frozenset({partition}))
        self._broker.coordinators.transactions.admit(
            command, lambda errors: self._call.attempt(partial(self._admitted, errors))
        )

    @property
    def _producer(self) -> ProducerIdentity:
        request = self._request
        return ProducerIdentity(
            ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)
        )

    @property
    def _is_verified(self) -> bool:
        is_adding = self._call.version >= ADDING_SINCE
        return is_adding or self._broker.settings.transaction_partition_verification_enable

    def _is_ongoing(self, partition: TopicPartition) -> bool:
        replica = self._broker.replicas.get(partition)
        return replica is not None and is_admitted(replica, self._producer)

    def _admitted(self, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        if not errors:
            self._commit()
            return
        (code,) = errors.values()
        self._refuse(code)

    def _commit(self) -> None:
        call, groups = self._call, self._broker.coordinators.groups
        command = request_command(CommitTransactionalOffsets, call, self._request)
        submit_for(call, groups, self._request.group_id, command, self._committed)

    def _committed(self, outcome: TxnOffsetCommitResponse | Refusal) -> None:
        if isinstance(outcome, Refusal):
            self._refuse(outcome.code)
            return
        topics = merge(self._refused, outcome.topics)
        self._call.answer(TxnOffsetCommitResponse(topics=topics))

    def _refuse(self, code: ErrorCode) -> None:
        told = told_code(ErrorReader.TXN_OFFSET_COMMIT, code, self._call.version)
        refused = [_refused(topic, told) for topic in self._asked]
        self._call.answer(TxnOffsetCommitResponse(topics=refused))


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
