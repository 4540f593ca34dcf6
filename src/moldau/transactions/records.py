"""Transactions in `__transaction_state`, as Kafka 4.3.1 writes them."""

from collections import defaultdict
from collections.abc import Iterator

from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.stored.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import Transaction


def record_of(transaction: Transaction, version: int) -> StoredRecord:
    """Return the record of a transaction; version 0 knows nothing of other producers' ids."""
    is_empty = transaction.state is TransactionState.EMPTY
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else list(_by_topic(transaction)),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.next_producer_epoch = transaction.next_producer_epoch
        value.client_transaction_version = transaction.client_version
    return StoredRecord(_key(transaction.transactional_id), value, version)


def tombstone_of(transactional_id: str) -> StoredRecord:
    """Return the record that makes an id forgotten."""
    return StoredRecord(_key(transactional_id), None)


def transaction_of(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    """Return what a record says."""
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=ProducerId(value.producer_id),
        producer_epoch=ProducerEpoch(value.producer_epoch),
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        previous_producer_id=ProducerId(value.previous_producer_id),
        next_producer_id=ProducerId(value.next_producer_id),
        next_producer_epoch=ProducerEpoch(value.next_producer_epoch),
        client_version=value.client_transaction_version,
    )


def _key(transactional_id: str) -> TransactionLogKey:
    return TransactionLogKey(transactional_id=transactional_id)


def _by_topic(transaction: Transaction) -> Iterator[PartitionsSchema]:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        topics[topic].append(partition)
    for name, partitions in topics.items():
        yield PartitionsSchema(topic=name, partition_ids=partitions)
