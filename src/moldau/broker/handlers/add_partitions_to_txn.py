"""AddPartitionsToTxn v0-v5. v2 PRODUCER_FENCED; v3 flexible; v4 is for brokers: several at once.

From v4 on an id's partitions may also only be asked for, whether they are in its transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.internal_topics import INTERNAL_TOPICS
from moldau.broker.request_parts import gather
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from moldau.transactions.commands import AddPartitions, VerifyPartitions
from moldau.transactions.transaction import BUMPING

SEVERAL_SINCE: Final = 4

Codes = Mapping[TopicPartition, ErrorCode]


def handle_add_partitions_to_txn(
    broker: Broker, call: Call, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | None:
    """Have partitions in transactions, all of an id's or none."""
    transactions = (
        request.transactions if call.version >= SEVERAL_SINCE else (_normalized(request),)
    )
    parts = [partial(_add, broker, call, transaction) for transaction in transactions]
    gather(call, parts, partial(_answer, call, transactions))
    return None


def _normalized(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _add(
    broker: Broker,
    call: Call,
    transaction: AddPartitionsToTxnTransaction,
    then: Callable[[Codes], None],
) -> None:
    partitions = dict.fromkeys(
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    )
    refused = {each: code for each in partitions if (code := _refuse(broker, call, each))}
    if refused:
        then(dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused)
        return
    if not transaction.transactional_id:
        then(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        return
    producer = ProducerIdentity(
        ProducerId(transaction.producer_id), ProducerEpoch(transaction.producer_epoch)
    )

    def answer(missing: AbstractSet[TopicPartition] | Refusal) -> None:
        if isinstance(missing, Refusal):
            code = told_code(ErrorReader.ADD_PARTITIONS_TO_TXN, missing.code, call.version)
            then(dict.fromkeys(partitions, code))
            return
        then(
            {
                each: ErrorCode.TRANSACTION_ABORTABLE if each in missing else ErrorCode.NONE
                for each in partitions
            }
        )

    transactions, id_ = broker.coordinators.transactions, transaction.transactional_id
    if transaction.verify_only:
        transactions.submit(id_, VerifyPartitions(id_, producer, frozenset(partitions)), answer)
        return
    client_version = BUMPING if call.version >= SEVERAL_SINCE else 0
    transactions.submit(
        id_,
        AddPartitions(id_, producer, frozenset(partitions), client_version),
        lambda outcome: answer(outcome if isinstance(outcome, Refusal) else frozenset()),
    )


def _refuse(broker: Broker, call: Call, partition: TopicPartition) -> ErrorCode | None:
    if partition.topic in INTERNAL_TOPICS and call.version < SEVERAL_SINCE:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = broker.image.topics.find(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _answer(
    call: Call,
    transactions: Sequence[AddPartitionsToTxnTransaction],
    codes_of_each: Sequence[Codes],
) -> None:
    answered = [
        AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=codes[TopicPartition(topic.name, index)],
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in transaction.topics
            ],
        )
        for transaction, codes in zip(transactions, codes_of_each, strict=True)
    ]
    if call.version >= SEVERAL_SINCE:
        call.answer(AddPartitionsToTxnResponse(results_by_transaction=answered))
    else:
        (result,) = answered
        call.answer(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results))
