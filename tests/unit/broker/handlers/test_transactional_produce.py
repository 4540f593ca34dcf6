"""Records of transactions: who is asked before they are appended, and what is answered."""

from dataclasses import replace

import pytest

from moldau.broker.handlers.add_partitions_to_txn import handle_add_partitions_to_txn
from moldau.broker.handlers.end_txn import handle_end_txn
from moldau.broker.handlers.init_producer_id import handle_init_producer_id
from moldau.broker.handlers.produce import handle_produce
from moldau.broker.handlers.write_txn_markers import handle_write_txn_markers
from moldau.coordination.producer import ProducerIdentity
from moldau.kernel.ids import LeaderEpoch, ProducerEpoch, ProducerId, TopicId, TopicPartition
from moldau.log.config import Durability
from moldau.log.extents import Isolation
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.stored.cluster_metadata import FeatureLevelRecord, RemoveTopicRecord
from moldau.records.batch import TRANSACTIONAL
from moldau.replication.errors import ReplicaError
from tests.unit.broker.world import SPLITTER, TOPIC, TOPIC_ID, Connection, World, produce_request
from tests.unit.log.logs import batch_of

STATE = "__transaction_state"
ID = "till"
COUNT = 3


class Till:
    """A broker with a coordinator, and a transactional producer; disks sync when they are told."""

    def __init__(self, version: int = 2, **settings: str) -> None:
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        self.w = w = World(durability=Durability.FSYNC, settings=dotted)
        w.broker.image.replay(FeatureLevelRecord(name="transaction.version", feature_level=version))
        w.create(STATE, topic_id=b"state".ljust(16, b"."))
        w.create(partitions=COUNT)
        w.environment.run()
        self.version = version
        self.producer = ProducerIdentity(ProducerId(-1), ProducerEpoch(-1))

    def init(self) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=10_000)
        self.ask(handle_init_producer_id, request, 5)
        if self.w.controller.submitted:
            _, then = self.w.controller.submitted.pop()
            then(AllocateProducerIdsResponse(producer_id_start=70, producer_id_len=1000))
        answer = self.settled()
        self.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def ask(self, handler, request, version: int) -> None:
        call = self.w.call(request._api_key, version)
        response = handler(self.w.broker, call, request)
        if response is not None:
            call.answer(response)

    def sync(self) -> None:
        """End the turn, and have the disk sync."""
        self.w.flush()
        self.w.sync()

    def settled(self):
        """Let everything happen that does, and return the answer."""
        for _ in range(4):
            self.sync()
        return self.w.connection.answer

    def add(self, *partitions: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.producer.id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=partitions)],
        )
        self.ask(handle_add_partitions_to_txn, request, 3)
        (topic,) = self.settled().results_by_topic_v3_and_below
        assert [row.partition_error_code for row in topic.results_by_partition] == [0] * len(
            partitions
        )

    def begin_end(self, *, commit: bool = True) -> None:
        request = EndTxnRequest(
            transactional_id=ID,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            committed=commit,
        )
        self.ask(handle_end_txn, request, 5 if self.version == 2 else 4)

    def end(self, *, commit: bool = True) -> ErrorCode:
        self.begin_end(commit=commit)
        answer = self.settled()
        if self.version == 2:
            self.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def batch(self, sequence: int = 0, value: bytes = b"v", **fields):
        return batch_of(
            value=value,
            attributes=TRANSACTIONAL,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=sequence,
            **fields,
        )

    def send(self, records: dict[int, bytes], connection: Connection | None = None, **fields):
        """Produce, without waiting for anything; the buffer is used for something else at once."""
        version = fields.pop("version", 12 if self.version == 2 else 11)
        request = produce_request(records, transactional_id=fields.pop("id_", ID))
        connection = connection or self.w.connection
        header = b"\0\0" + version.to_bytes(2) + (7).to_bytes(4) + b"\xff\xff" + b"\0"
        body = header + request.encode(version)
        data = bytearray(len(body).to_bytes(4) + body)
        (frame,), _ = SPLITTER.split(data, 0, len(data), frame_bytes_max=1 << 27)
        handle_produce(self.w.broker, self.w.call(0, version, connection=connection), data, frame)
        self.w.flush()
        data[:] = b"\xee" * len(data)

    def produce(self, records: dict[int, bytes], **fields) -> list[ErrorCode]:
        self.send(records, **fields)
        return codes(self.settled())


def codes(response) -> list[ErrorCode]:
    return [
        ErrorCode(row.error_code)
        for topic in response.responses
        for row in topic.partition_responses
    ]


def till(version: int = 2, **settings: str) -> Till:
    made = Till(version, **settings)
    assert made.init() is ErrorCode.NONE
    return made


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_from_its_beginning_to_its_end(version: int, commit: bool) -> None:
    t = till(version)
    if version == 1:
        t.add(0, 1)
    assert t.produce({0: t.batch(), 1: t.batch()}) == [0, 0]
    assert t.produce({0: t.batch(1)}) == [0]
    assert t.w.log().log.stable_offset == 0
    assert t.end(commit=commit) is ErrorCode.NONE
    assert t.w.log().log.stable_offset == t.w.log().log.high_watermark == 3
    assert t.w.log(1).log.stable_offset == 2
    aborted = t.w.log().log.read(0, bytes_max=1 << 20, isolation=Isolation.STABLE).aborted
    assert len(aborted) == (0 if commit else 1)


def test_records_wait_for_the_coordinator_and_keep_their_bytes() -> None:
    t = till()
    t.send({0: t.batch(value=b"kept" * 10)})
    assert t.w.log().log.log_end == 0, "the coordinator has not recorded it"
    assert codes(t.settled()) == [0]
    assert b"kept" * 10 in t.w.disk.read(t.w.log().log.segments[0].path, 0, 1000)


def test_batches_of_a_producer_keep_their_order() -> None:
    t = till()
    connections = [Connection() for _ in range(4)]
    for sequence, connection in enumerate(connections):
        t.send({0: t.batch(sequence)}, connection)
    assert t.w.log().log.log_end == 0
    for _ in range(4):
        t.sync()
    assert [codes(each.answer) for each in connections] == [[0]] * 4
    assert t.w.log().log.log_end == 4


def test_nobody_overtakes_a_batch_that_waits_for_another_partition() -> None:
    t = till()
    assert t.produce({0: t.batch()}) == [0]
    connections = [Connection() for _ in range(3)]
    t.send({0: t.batch(1), 1: t.batch()}, connections[0])
    t.send({0: t.batch(2)}, connections[1])
    assert t.w.log().log.log_end == 1
    for _ in range(4):
        t.sync()
    t.send({0: t.batch(3)}, connections[2])
    assert t.w.log().log.log_end == 4, "nobody is waited for any more"
    t.sync()
    assert [codes(each.answer) for each in connections] == [[0, 0], [0], [0]]


def test_records_wait_for_the_markers_of_the_transaction_before() -> None:
    t = till()
    t.produce({0: t.batch()})
    t.begin_end()
    t.sync()  # decided, and the markers are not synced
    answer = t.w.connection.answer
    t.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
    t.send({1: t.batch()})
    assert t.w.log(1).log.log_end == 0
    assert codes(t.settled()) == [0]
    assert t.w.log(1).log.log_end == 1


def test_records_do_not_wait_for_ever() -> None:
    t = till()
    t.produce({0: t.batch()})
    t.begin_end()
    t.sync()
    answer = t.w.connection.answer
    t.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
    t.send({1: t.batch()})
    t.w.environment.run(1.0)
    assert codes(t.w.connection.answer) == [ErrorCode.CONCURRENT_TRANSACTIONS]


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (9, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_a_partition_that_was_not_added(version: int, code: ErrorCode) -> None:
    t = till(1)
    t.add(1)
    assert t.produce({0: t.batch(), 1: t.batch()}, version=version) == [code, 0]
    assert t.w.log().log.log_end == 0


def test_without_verification_anybody_writes() -> None:
    t = till(1, transaction_partition_verification_enable="false")
    assert t.produce({0: t.batch()}) == [0]


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_coordinator_that_is_elsewhere(version: int) -> None:
    t = till()
    t.w.broker.coordinators.transactions.left(TopicPartition(STATE, 0))
    assert t.produce({0: t.batch()}, version=version) == [ErrorCode.NOT_ENOUGH_REPLICAS]


def test_a_batch_behind_one_that_is_missing() -> None:
    t = till()
    assert t.produce({0: t.batch(1)}) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert t.produce({0: t.batch(0)}) == [0]
    assert t.produce({0: t.batch(1)}) == [0]


def test_of_the_older_protocol_the_first_that_came_is_the_first() -> None:
    t = till(1)
    # Sent before the partition is added: refused, and to be sent again before what follows.
    assert t.produce({0: t.batch(5)}) == [ErrorCode.TRANSACTION_ABORTABLE]
    t.add(0)
    assert t.produce({0: t.batch(6)}) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert t.produce({0: t.batch(5)}) == [0]
    assert t.produce({0: t.batch(6)}) == [0]


def test_a_producer_that_was_fenced() -> None:
    t = till()
    zombie = t.batch(1)
    t.produce({0: t.batch()})
    assert t.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert t.init() is ErrorCode.NONE
    late = t.produce({0: zombie, 1: zombie[:]})
    assert late == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2
    assert t.produce({0: t.batch(), 1: t.batch()}) == [0, 0]


def test_two_producers_in_one_request() -> None:
    t = till()
    other = batch_of(attributes=TRANSACTIONAL, producer_id=99, producer_epoch=0, base_sequence=0)
    found = t.produce({0: t.batch(), 1: other})
    assert found == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


@pytest.mark.parametrize("ends", ["its producer", "another", "its timeout"])
def test_an_end_that_is_too_large_for_a_record_concerns_nobody_else(ends: str) -> None:
    t = till()
    t.produce({index: t.batch() for index in range(COUNT)})
    replica = t.w.replicas.get(TopicPartition(STATE, 0))
    before = replica.log.config
    replica.log.config = replace(before, max_message_bytes=100)
    if ends == "its timeout":
        t.w.environment.run(30.0)
    else:
        code = t.end() if ends == "its producer" else t.init()
        assert code is ErrorCode.UNKNOWN_SERVER_ERROR
    t.w.broker.shard_watch.lost.assert_not_called()

    replica.log.config = before
    t.producer = ProducerIdentity(ProducerId(70), ProducerEpoch(0))
    assert t.end() is ErrorCode.NONE
    assert t.init() is ErrorCode.NONE


def test_a_transaction_whose_partition_is_gone_ends_all_the_same() -> None:
    t = till()
    t.produce({0: t.batch(), 1: t.batch()})
    image = t.w.broker.image
    for index in range(COUNT):
        t.w.replicas.remove(TopicPartition(TOPIC, index))
    image.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert t.end() is ErrorCode.NONE
    assert t.init() is ErrorCode.NONE


def test_a_partition_that_is_offline_is_tried_again() -> None:
    t = till()
    t.produce({0: t.batch()})
    log = t.w.log().log
    t.w.replicas.offline(TopicPartition(TOPIC, 0))
    assert t.end() is ErrorCode.NONE
    assert t.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    t.w.replicas.lead(TopicPartition(TOPIC, 0), TopicId(TOPIC_ID), log, LeaderEpoch(6))
    t.w.environment.run(2.0)
    for _ in range(3):
        t.sync()
    assert log.stable_offset == 2
    assert t.init() is ErrorCode.NONE


def test_what_hangs_is_ended_by_an_admin() -> None:
    t = till()
    t.produce({0: t.batch()})
    marker = WritableTxnMarker(
        producer_id=t.producer.id,
        producer_epoch=t.producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0, 99])],
        coordinator_epoch=0,
    )
    t.ask(handle_write_txn_markers, WriteTxnMarkersRequest(markers=[marker]), 1)
    (row,) = t.settled().markers[0].topics
    assert [each.error_code for each in row.partitions] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert t.w.log().log.stable_offset == 2


def test_a_prepared_transaction_is_ended_by_another_producer() -> None:
    t = till(transaction_two_phase_commit_enable="true")
    keep = InitProducerIdRequest(transactional_id=ID, enable2_pc=True)
    t.ask(handle_init_producer_id, keep, 6)
    answer = t.settled()
    t.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
    assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (-1, -1)
    t.produce({0: t.batch()})
    t.w.environment.run(100_000.0)
    writer = t.producer
    keep = InitProducerIdRequest(transactional_id=ID, enable2_pc=True, keep_prepared_txn=True)
    t.ask(handle_init_producer_id, keep, 6)
    answer = t.settled()
    assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == writer
    assert t.w.log().log.stable_offset == 0
    t.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
    assert t.end() is ErrorCode.NONE
    assert t.w.log().log.stable_offset == 2
    assert t.produce({0: t.batch()}) == [0]


def test_a_marker_that_is_there_is_not_written_again_after_a_restart() -> None:
    t = till()
    t.produce({0: t.batch(), 1: t.batch()})
    t.begin_end()
    t.sync()  # decided, and the markers are written
    shard = t.w.broker.coordinators.transactions.find(ID)
    shard.lose(ReplicaError(ErrorCode.KAFKA_STORAGE_ERROR, "as if the disk had failed"))
    t.settled()
    assert [t.w.log(index).log.log_end for index in (0, 1)] == [2, 2]
    assert t.init() is ErrorCode.NONE
