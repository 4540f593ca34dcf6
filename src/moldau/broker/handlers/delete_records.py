"""DeleteRecords v0-v2. v2 flexible."""

from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.internal_topics import INTERNAL_TOPICS
from moldau.kernel.ids import Offset, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.replication.errors import ReplicaError

ALL: Final = -1
_NO_START: Final = -1


def handle_delete_records(
    broker: Broker, call: Call, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | None:
    """Move the starts of logs; answer when a crash would not bring the records back.

    The request's timeout is for followers, of which there are none: 0 is no reason to fail.
    """
    deletion = _Deletion(broker, call)
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            row = DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=_NO_START
            )
            rows.append(row)
            deletion.add(
                TopicPartition(topic.name, partition.partition_index), partition.offset, row
            )
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
    deletion.start(DeleteRecordsResponse(topics=topics))
    return None


class _Deletion:
    """A request on its way."""

    __slots__ = ("_broker", "_call", "_response", "_waiting")

    def __init__(self, broker: Broker, call: Call) -> None:
        self._broker = broker
        self._call = call
        self._response = DeleteRecordsResponse()
        self._waiting: dict[TopicPartition, tuple[Offset, DeleteRecordsPartitionResult]] = {}

    def add(
        self, partition: TopicPartition, before: int, row: DeleteRecordsPartitionResult
    ) -> None:
        """Look whether records of a partition may be deleted."""
        try:
            self._waiting[partition] = self._check(partition, before), row
        except ReplicaError as error:
            row.error_code = error.code

    def _check(self, partition: TopicPartition, before: int) -> Offset:
        if partition in self._waiting:
            raise ReplicaError(ErrorCode.INVALID_REQUEST, f"{partition} is there twice")
        if partition.topic in INTERNAL_TOPICS:
            raise ReplicaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is internal")
        log = self._broker.replicas.find_leader(partition).log
        assert log is not None, "it leads"
        if not log.config.is_deleted:
            raise ReplicaError(
                ErrorCode.POLICY_VIOLATION, f"{partition} has no cleanup.policy=delete"
            )
        high = log.high_watermark
        before = high if before == ALL else before
        if not 0 <= before <= high:
            raise ReplicaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{before} is not in 0 to {high}")
        return Offset(before)

    def start(self, response: DeleteRecordsResponse) -> None:
        """Delete what may be deleted."""
        self._response = response
        if not self._waiting:
            self._call.answer(response)
            return
        for partition, (before, _) in list(self._waiting.items()):
            self._broker.logs.delete_records(partition, before, partial(self._deleted, partition))

    def _deleted(self, partition: TopicPartition, start: Offset | None) -> None:
        self._call.attempt(partial(self._note, partition, start))

    def _note(self, partition: TopicPartition, start: Offset | None) -> None:
        _, row = self._waiting.pop(partition)
        if start is None:
            row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            row.low_watermark = start
        if not self._waiting:
            self._call.answer(self._response)
