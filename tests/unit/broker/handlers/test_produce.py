import pytest

from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from moldau.records.batch import CONTROL, TRANSACTIONAL
from moldau.records.compression import Codec
from tests.unit.broker.world import NODE, TOPIC, TOPIC_ID, ColdDisk, World, produce_request
from tests.unit.log.logs import START_MS, batch_of
from tests.unit.records.test_legacy import write_set

PARTITION = TopicPartition(TOPIC, 0)


def world(**options) -> World:
    made = World(**options)
    made.create()
    return made


def rows(response):
    return [row for topic in response.responses for row in topic.partition_responses]


# Acknowledging.


def test_acks_all_is_answered_when_the_bytes_are_written():
    w = world()
    assert w.produce(produce_request({0: batch_of(3)})) is None
    assert not w.connection.answers
    w.flush()
    (row,) = rows(w.connection.answer)
    assert (row.error_code, row.base_offset, row.log_append_time_ms) == (0, 0, -1)
    assert row.log_start_offset == 0
    assert w.log().log.high_watermark == 3
    assert w.write(batch_of(2)).base_offset == 3


@pytest.mark.parametrize("acks", [1, -1])
def test_alone_in_sync_it_is_answered_when_it_is_synced(acks):
    w = world(durability=Durability.FSYNC)
    w.produce(produce_request({0: batch_of()}, acks=acks))
    w.flush()
    assert not w.connection.answers
    w.sync()
    (row,) = rows(w.connection.answer)
    assert row.error_code == 0


def test_acks_none_is_not_answered():
    w = world()
    assert w.write_silently(batch_of()) == [None]
    assert w.connection.is_open
    assert w.log().log.high_watermark == 1


def test_acks_none_with_an_error_hangs_up():
    w = world()
    w.write_silently(b"nonsense" * 20)
    assert not w.connection.is_open


def test_acks_none_that_could_not_be_written_hangs_up():
    w = World()
    w.disk = ColdDisk(capacity_bytes=3000)
    w.create()
    assert w.write_silently(batch_of(value=b"x" * 4000)) == [None]
    assert not w.connection.is_open


def test_acks_none_is_not_disturbed_by_a_slow_disk():
    w = world(durability=Durability.FSYNC)
    w.produce(produce_request({0: batch_of()}, acks=0, timeout_ms=500))
    w.flush()
    w.environment.run(1.0)
    assert w.connection.answers == [None]
    assert w.connection.is_open


def test_other_acks_are_refused():
    row = world().write(batch_of(), acks=2)
    assert (row.error_code, row.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)


def test_what_is_not_stored_in_time():
    w = world(durability=Durability.FSYNC)
    w.produce(produce_request({0: batch_of()}, timeout_ms=500))
    w.flush()
    w.environment.run(0.4)
    assert not w.connection.answers
    w.environment.run(0.2)
    (row,) = rows(w.connection.answer)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    w.sync()
    assert not w.connection.answers, "it is answered once"


def test_a_full_disk_reaches_all_who_wait():
    w = World()
    w.disk = ColdDisk(capacity_bytes=3000)
    w.create()
    assert w.write(batch_of()).error_code == 0
    for _ in range(2):
        w.produce(produce_request({0: batch_of(value=b"x" * 2000)}))
    w.flush()
    found = [rows(answer)[0] for answer in w.connection.answers]
    assert [row.error_code for row in found] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert [row.base_offset for row in found] == [-1, -1]
    w.connection.answers.clear()
    assert w.write(batch_of()).base_offset == 1


def test_who_waits_hears_when_the_partition_goes():
    for what, code in (
        ("offline", ErrorCode.KAFKA_STORAGE_ERROR),
        ("remove", ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        w = world(durability=Durability.FSYNC)
        w.produce(produce_request({0: batch_of()}))
        w.flush()
        getattr(w.replicas, what)(PARTITION)
        (row,) = rows(w.connection.answer)
        assert row.error_code == code


def test_too_few_in_sync():
    w = World()
    w.create(min_in_sync=2, assigned=(1, 2, 3), in_sync=(1,))
    assert w.write(batch_of()).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    w.produce(produce_request({0: batch_of()}, acks=1))
    w.flush()
    assert w.log().log.high_watermark == 0, "nothing is committed by too few (KIP-966)"
    w.replicas.configure(PARTITION, min_in_sync=1)
    assert w.log().log.high_watermark == 1
    assert rows(w.connection.answer)[0].error_code == 0


def test_one_replica_is_enough_where_there_is_one():
    w = World()
    w.create(min_in_sync=2)
    assert w.write(batch_of()).error_code == 0


# Whose partition it is.


def test_partitions_that_are_not_here():
    w = world()
    w.create("elsewhere", topic_id=b"e" * 16, leader=2)
    w.replicas.offline(TopicPartition("broken", 0))
    codes = [
        rows(w.produce(produce_request({index: batch_of()}, topic=topic)))[0].error_code
        for topic, index in (("nowhere", 0), (TOPIC, 9), ("elsewhere", 0), ("broken", 0))
    ]
    assert codes == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ]


def test_the_new_leader_is_named():
    w = World()
    w.create(leader=NODE)
    w.replicas.remove(PARTITION)
    for version in (9, 10):
        response = w.produce(produce_request({0: batch_of()}), version)
        response = response.decode(response.encode(version), version)
        leader = rows(response)[0].current_leader
        if version == 9:
            assert (leader.leader_id, list(response.node_endpoints)) == (-1, [])
        else:
            assert (leader.leader_id, leader.leader_epoch) == (NODE, 5)
            (endpoint,) = response.node_endpoints
            assert (endpoint.node_id, endpoint.host, endpoint.port) == (NODE, "localhost", 9092)


def test_topics_by_id():
    w = world()
    request = produce_request({0: batch_of()}, topic="", topic_id=TOPIC_ID)
    assert w.produce(request, 13) is None
    w.flush()
    response = w.connection.answer
    response = response.decode(response.encode(13), 13)
    assert response.responses[0].topic_id == TOPIC_ID
    assert rows(response)[0].error_code == 0
    request = produce_request({0: batch_of()}, topic="", topic_id=b"?" * 16)
    assert rows(w.produce(request, 13))[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_internal_topics_are_for_brokers_and_for_admins():
    w = World()
    w.create("__consumer_offsets")
    request = produce_request({0: batch_of()}, topic="__consumer_offsets")
    (row,) = rows(w.produce(request))
    assert row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert w.produce(request, client_id="__admin_client") is None


def test_several_partitions_are_answered_together():
    w = World()
    w.create(partitions=3)
    assert w.produce(produce_request({0: batch_of(), 2: batch_of(2), 7: batch_of()})) is None
    w.flush()
    found = rows(w.connection.answer)
    assert [(row.index, row.error_code) for row in found] == [
        (0, 0),
        (2, 0),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_the_last_of_a_partition_sent_twice_counts():
    w = world()
    topics = [
        TopicProduceData(
            name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch_of(count))]
        )
        for count in (1, 5)
    ]
    w.produce(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics))
    w.flush()
    (row,) = rows(w.connection.answer)
    assert row.base_offset == 0
    assert w.log().log.log_end == 5


# What is in the batch.


def test_max_message_bytes_comes_before_the_checksum():
    w = World()
    w.create(config=LogConfig(max_message_bytes=200))
    batch = batch_of(value=b"x" * 500)
    batch[30] ^= 1
    row = w.write(batch)
    assert row.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in row.error_message


def test_damaged_batches():
    w = world()
    batch = batch_of()
    batch[-1] ^= 1
    assert w.write(batch).error_code == ErrorCode.CORRUPT_MESSAGE
    assert w.write(batch_of()[:-1]).error_code == ErrorCode.INVALID_RECORD
    assert w.write(b"").error_code == ErrorCode.INVALID_RECORD
    assert w.write(None).error_code == ErrorCode.INVALID_RECORD
    assert w.write(batch_of() + batch_of()).error_code == ErrorCode.INVALID_RECORD
    assert w.write(batch_of(attributes=CONTROL)).error_code == ErrorCode.INVALID_RECORD


def test_records_without_a_key_on_a_compacted_topic():
    w = World()
    w.create(config=LogConfig(cleanup_policy=frozenset({"compact"})))
    row = w.write(batch_of(2, key=None))
    assert row.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in row.record_errors] == [0, 1]
    assert w.write(batch_of()).error_code == 0


def test_timestamps():
    w = World()
    w.create(config=LogConfig(message_timestamp_type="LogAppendTime"))
    w.environment.run(1.5)
    assert w.write(batch_of()).log_append_time_ms == START_MS + 1500
    w = world()
    row = w.write(batch_of(timestamp=START_MS + 7_200_000))
    assert row.error_code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_become_batches(magic):
    w = world()
    data = write_set(magic, [(START_MS, b"k", b"v"), (START_MS, b"l", b"w")])
    assert w.write(data, version=2).error_code == 0
    assert w.log().log.log_end == 2
    assert w.write(data, version=3).error_code == ErrorCode.INVALID_RECORD


def test_zstd_needs_version_seven():
    w = world()
    data = batch_of(codec=Codec.ZSTD)
    assert w.write(data, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert w.write(data, version=7).error_code == 0


# Idempotent producers.


def idempotent(sequence: int, count: int = 1, *, epoch: int = 0, **fields) -> bytearray:
    return batch_of(count, producer_id=9, producer_epoch=epoch, base_sequence=sequence, **fields)


def test_a_batch_that_is_sent_again_has_its_old_offset():
    w = world()
    w.write(idempotent(0, 3))
    w.write(idempotent(3))
    assert w.write(idempotent(0, 3)).base_offset == 0
    assert w.log().log.log_end == 4


def test_a_batch_sent_again_before_it_is_stored_waits_as_well():
    w = world(durability=Durability.FSYNC)
    for _ in range(2):
        w.produce(produce_request({0: idempotent(0)}))
    w.flush()
    assert not w.connection.answers
    w.sync()
    assert [rows(answer)[0].base_offset for answer in w.connection.answers] == [0, 0]


def test_sequences_and_epochs():
    w = world()
    assert w.write(idempotent(5)).error_code == 0, "an unknown producer may begin anywhere"
    assert w.write(idempotent(8)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert w.write(idempotent(3, epoch=1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert w.write(idempotent(0, epoch=1)).error_code == 0
    assert w.write(idempotent(6)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transactional_batch_outside_of_a_transaction():
    w = world()
    batch = idempotent(0, attributes=TRANSACTIONAL)
    assert w.write(batch).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    nobodys = batch_of(attributes=TRANSACTIONAL)
    response = w.produce(produce_request({0: nobodys}, transactional_id="t"))
    assert rows(response)[0].error_code == ErrorCode.INVALID_RECORD


def test_a_log_that_comes_back_is_another():
    w = world()
    w.replicas.offline(PARTITION)
    log = w.log().log
    w.replicas.lead(PARTITION, TopicId(TOPIC_ID), log, LeaderEpoch(6))
    assert w.write(batch_of()).error_code == 0
    assert log.find_epoch_of(0) == 6
