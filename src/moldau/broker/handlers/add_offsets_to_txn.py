"""AddOffsetsToTxn v0-v4. v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE."""

from functools import partial

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import submit_for
from moldau.coordination.command import Done
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.coordination.shards import shard_of
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from moldau.transactions.commands import AddPartitions


def handle_add_offsets_to_txn(
    broker: Broker, call: Call, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | None:
    """Have the group's partition of __consumer_offsets in the transaction."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    groups = broker.coordinators.groups
    index = groups.partition_of(request.group_id)
    if index is None:
        # Clients look for the group's coordinator after this, and the topic is made then.
        index = shard_of(request.group_id, broker.settings.offsets_topic_num_partitions)
    command = AddPartitions(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)),
        frozenset({TopicPartition(groups.topic, index)}),
        client_version=0,
    )
    transactions = broker.coordinators.transactions
    submit_for(call, transactions, request.transactional_id, command, partial(_answer, call))
    return None


def _answer(call: Call, outcome: Done | Refusal) -> None:
    code = ErrorCode.NONE
    if isinstance(outcome, Refusal):
        code = told_code(ErrorReader.ADD_OFFSETS_TO_TXN, outcome.code, call.version)
    call.answer(AddOffsetsToTxnResponse(error_code=code))
