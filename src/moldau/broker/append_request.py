"""A Produce: its batches are checked, appended, and acknowledged when they are committed."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from moldau._native.connection import PlainProduce
from moldau._native.frames import Produce, ProducePartition, ProduceTopic, encode_produced
from moldau._native.records import Batch, number_records
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.internal_topics import ADMIN_CLIENT_ID, INTERNAL_TOPICS
from moldau.broker.leaders import current_leader, find_endpoint
from moldau.kernel.errors import CorruptBatchError, OffsetDeltaError, ProtocolError
from moldau.log.appender import Appended
from moldau.log.errors import AppendError
from moldau.log.validation import Checked, Writable
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from moldau.records.batch import validate
from moldau.records.compression import Codec
from moldau.records.legacy import magic_of, up_convert
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
BATCHES_SINCE: Final = 3
ZSTD_SINCE: Final = 7
LEADER_SINCE: Final = 10
TOPIC_ID_SINCE: Final = 13
NOT_IN_TIME: Final = "not stored in time"
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
_ACKS: Final = frozenset({ACKS_ALL, ACKS_LEADER, ACKS_NONE})
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
# What is not counted as failed, as in Kafka: the client or the disk is to blame.
_EXPECTED: Final = _TOO_LARGE | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.KAFKA_STORAGE_ERROR,
}

_NO_LEADER: Final = LeaderIdAndEpoch()  # shared: one is part of every answer, and few are filled


class AppendRequest:
    """A Produce on its way: what became of each partition, and those not yet committed."""

    __slots__ = (
        "_acks",
        "_broker",
        "_call",
        "_is_settled",
        "_rows",
        "_topics",
        "deadline",
        "has_errors",
        "is_done",
        "waiting",
    )

    def __init__(self, broker: Broker, call: Call, produce: Produce) -> None:
        self._broker = broker
        self._call = call
        self._acks = produce.acks
        self.deadline = call.received.monotonic + produce.timeout_ms / 1000
        topics = produce.topics
        if len(topics) != 1 or len(topics[0].partitions) != 1:
            topics = last_of_each(topics)
        self._topics = topics
        self._rows: list[Appended | PartitionProduceResponse] = []
        """Where each partition's records are, or why they are not; in the request's order."""
        self.waiting: dict[Replica, int] = {}
        """Those that have not committed it yet, with the numbers of their rows."""
        self.has_errors = False
        self._is_settled = False
        self.is_done = False

    def settle(self) -> None:
        """Answer, or park until what is appended is committed."""
        self._is_settled = True
        if self.waiting:
            self._broker.write_deadlines.fresh.append(self)
        else:
            self.end()

    # Appending.

    def append(self, data: memoryview) -> None:
        """Append what can be."""
        for topic in self._topics:
            name = topic.name
            if topic.topic_id is not None:
                known = self._broker.image.topics.find_by_id(topic.topic_id)
                name = None if known is None else known.name
            for partition in topic.partitions:
                try:
                    self._rows.append(self._append(name, partition, data))
                except (ReplicaError, AppendError) as error:
                    self._rows.append(self._error_row(name, partition, error))

    def _append(self, topic: str | None, partition: ProducePartition, data: memoryview) -> Appended:
        """Append the records of one partition; `ReplicaError` and `AppendError` refuse them."""
        acks = self._acks
        index = partition.index
        if acks not in _ACKS:
            raise ReplicaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, and may be -1, 0 or 1"
            )
        if topic is None:
            raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        replica = self._broker.replicas.find_leader((topic, index))
        log = replica.log
        assert log is not None, "it leads"
        traffic = replica.traffic
        traffic.produce_requests += 1
        if topic in INTERNAL_TOPICS and self._call.client_id != ADMIN_CLIENT_ID:
            raise ReplicaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by brokers only"
            )
        if acks == ACKS_ALL:
            replica.check_in_sync()
        records, checked = self._check(partition, data, log.config.max_message_bytes)
        batch = checked[0][0]
        if batch.is_transactional:
            self._admit(replica, batch)
        # With acks=0 too: the turn's write may fail, and then the connection is closed.
        self.waiting[replica] = len(self._rows)
        try:
            appended = replica.append(records, checked, self._call.received, self)
        except AppendError:
            del self.waiting[replica]
            raise
        traffic.bytes_in += partition.end - partition.start
        traffic.messages_in += appended.last_offset - appended.base_offset + 1
        return appended

    def _admit(self, replica: Replica, batch: Batch) -> None:  # noqa: ARG002 - all are refused
        """Refuse a batch that is in no transaction; the request names no transactional id."""
        raise ReplicaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch without a transactional id",
        )

    def _check(
        self, partition: ProducePartition, data: memoryview, bytes_max: int
    ) -> tuple[Writable, Checked]:
        """Return the records by themselves, and what a walk over them has found."""
        start, end = partition.start, partition.end
        if end - start > bytes_max:
            # Before anything is looked at: what is too large is not worth a checksum.
            raise ReplicaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{end - start} bytes are over max.message.bytes, {bytes_max}",
            )
        if start == end:
            raise ReplicaError(ErrorCode.INVALID_RECORD, "there are no records")
        records: Writable = data[start:end]
        version = self._call.version
        opened_bytes_max = self._broker.settings.moldau_batch_decompressed_max_bytes
        try:
            if version < BATCHES_SINCE and magic_of(records) < 2:
                records = bytearray(up_convert(records))
            try:
                checked = validate(records, bytes_max=opened_bytes_max)
            except OffsetDeltaError:
                # Kafka stores these, and consumers then pass records over: docs/adr/0006.
                numbered = number_records(records)
                if numbered is None:
                    raise
                records = numbered
                checked = validate(records, bytes_max=opened_bytes_max)
        except CorruptBatchError as error:
            raise ReplicaError(_corruption(records), str(error)) from error
        except ProtocolError as error:
            raise AppendError(ErrorCode.INVALID_RECORD, str(error)) from error
        batch = checked[0][0]
        if len(checked) > 1:
            raise ReplicaError(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
        if version < ZSTD_SINCE and batch.codec == Codec.ZSTD:
            raise ReplicaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce v{ZSTD_SINCE}"
            )
        return records, checked

    def _error_row(
        self, topic: str | None, partition: ProducePartition, error: ReplicaError | AppendError
    ) -> PartitionProduceResponse:
        index = partition.index
        row = self._refusal(topic, index, error.code, str(error))
        replica = None if topic is None else self._broker.replicas.get((topic, index))
        if replica is not None:
            if error.code in _TOO_LARGE:
                replica.traffic.bytes_rejected += partition.end - partition.start
            elif error.code not in _EXPECTED:
                replica.traffic.produce_failed += 1
        if isinstance(error, AppendError):
            if replica is not None and replica.log is not None:
                row.log_start_offset = replica.log.log_start
            row.record_errors = [
                BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=reason)
                for number, reason in error.record_errors
            ]
        return row

    def _refusal(
        self, topic: str | None, index: int, code: ErrorCode, message: str
    ) -> PartitionProduceResponse:
        self.has_errors = True
        return _refusal_row(self._broker, self._call, topic, index, code, message)

    # Waiting.

    def committed(self, replica: Replica) -> None:
        """Take note that a partition has committed its batch; acknowledge after the last."""
        self.waiting.pop(replica, None)
        if self._is_settled and not self.waiting and not self.is_done:
            self._call.attempt(self.end)

    def lost(self, replica: Replica, error: ReplicaError) -> None:
        """Take note that a partition has lost its batch."""
        self._call.attempt(partial(self._lose, replica, error))

    def _lose(self, replica: Replica, error: ReplicaError) -> None:
        number = self.waiting.pop(replica, None)
        if number is not None:
            self._take_back(number, replica, error.code, str(error))
        if not self.waiting and not self.is_done:
            self.end()

    def expire(self) -> None:
        """Answer that the time is up for what is not committed; it may be later."""
        self.is_done = True
        for replica in self.waiting:
            replica.unwait(self)
        self._call.attempt(self._answer_late)

    def _answer_late(self) -> None:
        for replica, number in self.waiting.items():
            if self._acks != ACKS_NONE:
                code = ErrorCode.REQUEST_TIMED_OUT
                self._take_back(number, replica, code, NOT_IN_TIME)
        self.end()

    def _take_back(self, number: int, replica: Replica, code: ErrorCode, message: str) -> None:
        """Put an error in the place of what was appended."""
        topic, index = replica.partition
        refusal = self._refusal(topic, index, code, message)
        appended = self._rows[number]
        assert isinstance(appended, Appended), "it waited"
        refusal.log_start_offset = appended.log_start
        self._rows[number] = refusal

    # Answering.

    def end(self) -> None:
        """Answer; a client that wants no answer hears of an error in no other way than this."""
        self.is_done = True
        call = self._call
        if self._acks != ACKS_NONE:
            row = self._rows[0] if len(self._rows) == len(self._topics) == 1 else None
            if isinstance(row, Appended):
                base_offset, _, append_time_ms, log_start, _ = row
                call.answer(
                    encode_produced(
                        call.version,
                        call.correlation_id,
                        self._topics[0],
                        base_offset,
                        append_time_ms,
                        log_start,
                    )
                )
            else:
                call.answer(self._response())
        elif self.has_errors:
            call.hang_up()
        else:
            call.answer(None)

    def _response(self) -> ProduceResponse:
        """Return the answer, whatever it is."""
        rows = iter(self._rows)
        responses = []
        for topic in self._topics:
            partitions = [
                _appended_row(partition.index, row) if isinstance(row, Appended) else row
                # The topic's end comes first: no row is taken in vain.
                for partition, row in zip(topic.partitions, rows, strict=False)
            ]
            responses.append(
                TopicProduceResponse(name=topic.name or "", partition_responses=partitions)
                if topic.topic_id is None
                else TopicProduceResponse(topic_id=topic.topic_id, partition_responses=partitions)
            )
        return _response(self._broker, self._call, responses)


def refuse_plain(broker: Broker, call: PlainProduce, error: ReplicaError | None) -> None:
    """Answer a plain Produce whose batch is lost, or, without an error, not committed in time."""
    if call.acks == ACKS_NONE:
        if error is None:
            call.answer(None)
        else:
            call.hang_up()
        return
    replica: Replica = call.replica
    topic, index = replica.partition
    code = ErrorCode.REQUEST_TIMED_OUT if error is None else error.code
    message = NOT_IN_TIME if error is None else str(error)
    row = _refusal_row(broker, call, topic, index, code, message)
    row.log_start_offset = call.log_start
    answered = (
        TopicProduceResponse(name=topic, partition_responses=[row])
        if call.version < TOPIC_ID_SINCE
        else TopicProduceResponse(topic_id=replica.topic_id, partition_responses=[row])
    )
    call.answer(_response(broker, call, [answered]))


def _response(
    broker: Broker, call: Call, responses: Sequence[TopicProduceResponse]
) -> ProduceResponse:
    """Return the answer, with the endpoints of the leaders that the rows name."""
    node_ids = dict.fromkeys(
        row.current_leader.leader_id for topic in responses for row in topic.partition_responses
    )
    endpoints = [
        NodeEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port)
        for node_id in node_ids
        if node_id >= 0 and (endpoint := find_endpoint(broker, call.peer, node_id)) is not None
    ]
    return ProduceResponse(responses=responses, node_endpoints=endpoints)


def _refusal_row(
    broker: Broker, call: Call, topic: str | None, index: int, code: ErrorCode, message: str
) -> PartitionProduceResponse:
    row = PartitionProduceResponse(
        index=index,
        error_code=code,
        error_message=message,
        base_offset=-1,
        current_leader=_NO_LEADER,
    )
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= LEADER_SINCE:
        assert topic is not None, "it was looked for by its name"
        leader = current_leader(broker, call.peer, topic, index)
        # So that the client need not ask (KIP-951).
        row.current_leader = LeaderIdAndEpoch(
            leader_id=leader.node_id, leader_epoch=leader.leader_epoch
        )
    return row


def _appended_row(index: int, appended: Appended) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_time_ms,
        log_start_offset=appended.log_start,
        current_leader=_NO_LEADER,
    )


def _corruption(records: Writable) -> ErrorCode:
    """Tell damage, which a client sends again, from what was never a batch of format 2."""
    is_legacy = len(records) > _MAGIC_POSITION and records[_MAGIC_POSITION] < 2
    size = int.from_bytes(records[_LENGTH_POSITION : _LENGTH_POSITION + 4], signed=True)
    is_cut = size > len(records) - _LENGTH_POSITION - 4
    return ErrorCode.INVALID_RECORD if is_legacy or is_cut else ErrorCode.CORRUPT_MESSAGE


def last_of_each(topics: list[ProduceTopic]) -> list[ProduceTopic]:
    """Leave out all but the last of what is sent for one partition, as Kafka does."""
    chosen: dict[tuple[str | bytes | None, int], ProducePartition] = {}
    count = 0
    for topic in topics:
        count += len(topic.partitions)
        for partition in topic.partitions:
            chosen[topic.topic_id or topic.name, partition.index] = partition
    if len(chosen) < count:
        for topic in topics:
            key = topic.topic_id or topic.name
            topic.partitions[:] = [p for p in topic.partitions if chosen[key, p.index] is p]
    return topics
