from moldau.broker.handlers.delete_records import handle_delete_records
from moldau.log.config import LogConfig
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.unit.broker.world import TOPIC, World
from tests.unit.log.logs import batch_of


def ask(w: World, offsets: dict[int, int], topic: str = TOPIC):
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset)
        for index, offset in offsets.items()
    ]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=0
    )
    return w.ask(handle_delete_records, request, 2)


def rows(response):
    return [(row.error_code, row.low_watermark) for row in response.topics[0].partitions]


def filled(**options) -> World:
    w = World()
    w.create(partitions=2, **options)
    for index in (0, 1):
        for _ in range(4):
            w.write(batch_of(2), index)
    return w


def test_the_log_starts_later():
    w = filled()
    assert ask(w, {0: 3, 1: -1}) is None
    w.logs.catch_up()
    assert rows(w.connection.answer) == [(0, 3), (0, 8)]
    assert w.log(0).log.log_start == 3
    ask(w, {0: 1})
    w.logs.catch_up()
    assert rows(w.connection.answer) == [(0, 3)], "what is gone stays gone"


def test_errors():
    w = filled()
    assert rows(ask(w, {0: 9})) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert rows(ask(w, {0: -2})) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert rows(ask(w, {5: 0})) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    internal = ask(w, {0: 0}, "__consumer_offsets")
    assert rows(internal) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    compacted = filled(config=LogConfig(cleanup_policy=frozenset({"compact"})))
    assert rows(ask(compacted, {0: 1})) == [(ErrorCode.POLICY_VIOLATION, -1)]


def test_no_time_is_enough_where_no_follower_is_waited_for():
    w = filled()
    ask(w, {0: 1})
    w.environment.run(1.1)
    assert not w.connection.answers
    w.logs.catch_up()
    assert rows(w.connection.answer) == [(0, 1)]
