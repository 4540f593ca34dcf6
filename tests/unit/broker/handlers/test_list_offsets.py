import pytest

from moldau.broker.handlers.list_offsets import handle_list_offsets
from moldau.kernel.ids import TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.records.batch import TRANSACTIONAL
from tests.unit.broker.world import TOPIC, Connection, World
from tests.unit.log.logs import START_MS, batch_of


def request(*timestamps: int, topic: str = TOPIC, **fields) -> ListOffsetsRequest:
    epoch = fields.pop("current_leader_epoch", -1)
    partitions = [
        ListOffsetsPartition(
            partition_index=index,
            timestamp=timestamp,
            current_leader_epoch=epoch,
            max_num_offsets=fields.get("max_num_offsets", 1),
        )
        for index, timestamp in enumerate(timestamps)
    ]
    return ListOffsetsRequest(
        replica_id=fields.pop("replica_id", -1),
        isolation_level=fields.pop("isolation_level", 0),
        topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
    )


def ask(w: World, *timestamps: int, version: int = 11, **fields):
    response = w.ask(handle_list_offsets, request(*timestamps, **fields), version)
    rows = [row for topic in response.topics for row in topic.partitions]
    return rows[0] if len(rows) == 1 else rows


def found(row) -> tuple[int, int, int, int]:
    return row.error_code, row.timestamp, row.offset, row.leader_epoch


def filled(**options) -> World:
    config = options.pop("config", None)
    w = World(**options)
    w.create(config=config)
    for number in range(5):
        w.write(batch_of(2, timestamp=START_MS + 100 * number))
    return w


def test_earliest_and_latest():
    w = filled()
    assert found(ask(w, -1)) == (0, -1, 10, 5)
    assert found(ask(w, -2)) == (0, -1, 0, 5)
    w.log().log.delete_records(4)
    assert found(ask(w, -2)) == (0, -1, 4, 5)
    assert found(ask(w, -4)) == (0, -1, 4, 5)


def test_an_empty_log():
    w = World()
    w.create()
    assert found(ask(w, -1)) == (0, -1, 0, 5)
    assert found(ask(w, -2)) == (0, -1, 0, 5)
    assert found(ask(w, -3)) == (0, -1, -1, -1)
    assert found(ask(w, START_MS)) == (0, -1, -1, -1)


def test_by_time():
    w = filled()
    assert found(ask(w, START_MS + 150)) == (0, START_MS + 200, 4, 5)
    assert found(ask(w, 0)) == (0, START_MS, 0, 5)
    assert found(ask(w, START_MS + 401)) == (0, -1, -1, -1)


def test_the_largest_timestamp():
    w = filled()
    w.write(batch_of(timestamp=START_MS))
    assert found(ask(w, -3)) == (0, START_MS + 400, 8, 5)


def test_nothing_is_tiered():
    w = filled()
    assert found(ask(w, -5)) == (0, -1, -1, -1)
    assert found(ask(w, -6)) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)]
)
def test_versions_of_special_timestamps(timestamp, since):
    w = filled()
    for version in range(1, 12):
        row = ask(w, timestamp, version=version)
        expected = 0 if version >= since else ErrorCode.UNSUPPORTED_VERSION
        assert row.error_code == expected


def test_isolation():
    w = World(durability=Durability.FSYNC)
    w.create()
    for number in range(5):
        w.produce_with(Connection(), batch_of(2, timestamp=START_MS + 100 * number))
    assert ask(w, -1).offset == 0, "nothing is synced"
    assert ask(w, -1, replica_id=-2).offset == 10
    assert ask(w, START_MS).offset == -1
    w.sync()
    log = w.log()
    log.append(batch_of(producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL))
    log.commit()
    assert ask(w, -1).offset == 11
    assert ask(w, -1, isolation_level=1).offset == 10
    assert ask(w, START_MS + 1, isolation_level=1).offset == 2


def test_errors():
    w = filled()
    assert ask(w, -1, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(w, -1, current_leader_epoch=4).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(w, -1, current_leader_epoch=6).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    twice = request(-1)
    twice.topics = [twice.topics[0], twice.topics[0]]
    response = w.ask(handle_list_offsets, twice, 11)
    assert [topic.partitions[0].error_code for topic in response.topics] == [
        ErrorCode.INVALID_REQUEST
    ] * 2


def test_cold_lookups_are_answered_later():
    w = filled(config=LogConfig(segment_bytes=200))
    w.disk.cold.update(segment.path for segment in w.log().log.segments)
    response = w.ask(handle_list_offsets, request(START_MS + 100), 11)
    assert response is None
    w.logs.catch_up()
    (row,) = w.connection.answer.topics[0].partitions
    assert row.offset == 2


def test_a_broken_log_goes_out_of_service():
    w = filled()
    segment = w.log().log.segments[0]
    w.disk._files[segment.path][20:] = b"?" * 60
    assert ask(w, START_MS + 100).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [partition for partition, _ in w.logs.broken] == [TopicPartition(TOPIC, 0)]


def test_the_old_style():
    w = filled(config=LogConfig(segment_bytes=300))
    count = len([segment for segment in w.log().log.segments if segment.size])
    assert count > 1
    assert list(ask(w, -1, version=0).old_style_offsets) == [10]
    assert list(ask(w, -2, version=0).old_style_offsets) == [0]
    every = list(ask(w, -1, version=0, max_num_offsets=100).old_style_offsets)
    assert every == sorted(every, reverse=True)
    assert (len(every), every[0], every[-1]) == (count + 1, 10, 0)
    assert ask(w, -3, version=0).error_code == ErrorCode.UNSUPPORTED_VERSION
