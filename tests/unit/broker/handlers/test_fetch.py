import pytest

from moldau._native.records import read_batches
from moldau.broker.handlers import fetch as fetch_module
from moldau.broker.handlers.fetch import handle_fetch
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.stored.cluster_metadata import RemoveTopicRecord
from moldau.records.batch import TRANSACTIONAL
from tests.unit.broker.world import NODE, TOPIC, TOPIC_ID, Connection, World
from tests.unit.log.logs import batch_of

PARTITION = TopicPartition(TOPIC, 0)


def world(partitions: int = 1, **options) -> World:
    config = options.pop("config", None)
    made = World(**options)
    made.create(partitions=partitions, config=config)
    return made


def wanted(index: int = 0, offset: int = 0, **fields) -> FetchPartition:
    fields.setdefault("partition_max_bytes", 1 << 20)
    return FetchPartition(partition=index, fetch_offset=offset, **fields)


def request(*partitions: FetchPartition, **fields) -> FetchRequest:
    fields.setdefault("min_bytes", 1)
    fields.setdefault("max_wait_ms", 500)
    topic_id = fields.pop("topic_id", TOPIC_ID)
    topic = fields.pop("topic", TOPIC)
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)]
    return FetchRequest(topics=topics if partitions else (), **fields)


def fetch(w: World, *partitions: FetchPartition, version: int = 18, **fields):
    """Ask; return the answer, None while it waits."""
    connection = fields.pop("connection", w.connection)
    return w.ask(handle_fetch, request(*partitions, **fields), version, connection=connection)


def rows(response):
    return [row for topic in response.responses for row in topic.partitions]


def offsets(row) -> list[int]:
    return [batch.base_offset for batch in read_batches(row.records)]


def answered(w: World, version: int = 18):
    response = w.connection.answer
    return response.decode(response.encode(version), version)


# Reading.


@pytest.mark.parametrize("version", range(4, 19))
def test_all_versions(version):
    w = world()
    w.write(batch_of(3))
    response = fetch(w, wanted(), version=version, session_epoch=-1)
    (row,) = rows(response)
    assert (row.error_code, row.high_watermark, row.last_stable_offset) == (0, 3, 3)
    assert (row.preferred_read_replica, row.aborted_transactions) == (-1, None)
    assert offsets(row) == [0]
    topic = response.responses[0]
    assert (topic.topic, topic.topic_id) == ((TOPIC, bytes(16)) if version < 13 else ("", TOPIC_ID))


def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch():
    w = world()
    w.write(batch_of(10))
    w.write(batch_of(10))
    assert offsets(rows(fetch(w, wanted(offset=5)))[0]) == [0, 10]


def test_the_first_batch_is_whole_even_if_it_is_too_large():
    w = world(2)
    for index in (0, 1):
        w.write(batch_of(value=b"x" * 5000), index)
    first, second = rows(fetch(w, wanted(0, partition_max_bytes=100), wanted(1), max_bytes=1000))
    assert offsets(first) == [0]
    assert second.records == b""
    assert second.high_watermark == 1


def test_max_bytes_is_for_all_and_partition_max_bytes_for_one():
    w = world(2)
    size = len(batch_of())
    for _ in range(10):
        for index in (0, 1):
            w.write(batch_of(), index)
    first, second = rows(
        fetch(w, wanted(0, partition_max_bytes=4 * size), wanted(1), max_bytes=6 * size)
    )
    assert (len(first.records), len(second.records)) == (4 * size, 2 * size)


def test_bounds_of_the_broker_and_of_the_connection():
    w = world(settings={"fetch.max.bytes": "1024"})
    size = len(batch_of())
    for _ in range(50):
        w.write(batch_of())
    assert len(rows(fetch(w, wanted()))[0].records) == 1024
    w.connection.room = 500
    assert len(rows(fetch(w, wanted()))[0].records) == 500
    w.connection.room = 0
    assert len(rows(fetch(w, wanted()))[0].records) == size, "no less than a batch"


def test_what_is_read_and_not_sent_counts():
    w = world()
    w.write(batch_of())
    fetch(w, wanted())
    assert w.broker.fetch_bytes_out == len(batch_of())
    assert w.logs.released == 0
    w.connection.sents[-1]()
    assert w.broker.fetch_bytes_out == 0


def test_offsets_out_of_range():
    w = world()
    w.write(batch_of(3))
    for offset in (4, -1):
        (row,) = rows(fetch(w, wanted(offset=offset)))
        assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (row.high_watermark, row.log_start_offset, row.records) == (-1, -1, b"")
    w.log().log.delete_records(2)
    assert rows(fetch(w, wanted(offset=1)))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_cold_reads_are_answered_later():
    w = world(config=LogConfig(segment_bytes=200))
    for _ in range(3):
        w.write(batch_of())
    w.disk.cold.update(segment.path for segment in w.log().log.segments)
    assert fetch(w, wanted(offset=1, partition_max_bytes=10)) is None
    w.disk.cold.clear()
    w.logs.catch_up()
    assert offsets(rows(answered(w))[0]) == [1]


def test_read_committed_sees_no_open_transaction_and_is_told_of_aborted_ones():
    w = world()
    w.write(batch_of())
    log = w.log()
    transactional = {"producer_id": 7, "producer_epoch": 0, "attributes": TRANSACTIONAL}
    log.append(batch_of(base_sequence=0, **transactional))
    log.log.write()
    w.replicas.note_durable(PARTITION, log.log)
    (row,) = rows(fetch(w, wanted(), isolation_level=1))
    assert offsets(row) == [0]
    assert (row.high_watermark, row.last_stable_offset, list(row.aborted_transactions)) == (
        2,
        1,
        [],
    )
    assert offsets(rows(fetch(w, wanted()))[0]) == [0, 1]
    log.end_transaction(commit=False, producer_id=7, producer_epoch=0)
    (row,) = rows(fetch(w, wanted(), isolation_level=1))
    assert offsets(row) == [0, 1, 2]
    assert [(a.producer_id, a.first_offset) for a in row.aborted_transactions] == [(7, 1)]


# Whose partition it is.


def test_partitions_that_are_not_here():
    w = world()
    w.create("elsewhere", topic_id=b"e" * 16, leader=2)
    w.replicas.offline(TopicPartition("broken", 0))
    for version, topic, topic_id, code in (
        (12, "nowhere", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (13, "", b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        (13, "", b"e" * 16, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (12, "broken", bytes(16), ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        response = fetch(w, wanted(), version=version, topic=topic, topic_id=topic_id)
        assert rows(response)[0].error_code == code


def test_a_topic_that_was_made_anew_has_another_id():
    w = world()
    w.replicas.remove(PARTITION)
    log = w.log().log
    w.replicas.lead(PARTITION, TopicId(b"other".ljust(16)), log, LeaderEpoch(5))
    assert rows(fetch(w, wanted()))[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_leader_epochs_are_checked_and_the_new_leader_is_named():
    w = world()
    fenced = fetch(w, wanted(current_leader_epoch=4))
    assert rows(fenced)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert rows(fenced)[0].current_leader.leader_epoch == 5
    assert fenced.node_endpoints[0].node_id == NODE
    unknown = fetch(w, wanted(current_leader_epoch=6))
    assert rows(unknown)[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert not unknown.node_endpoints
    assert not fetch(w, wanted(current_leader_epoch=4), version=15).node_endpoints


def test_a_log_that_diverged_is_told_where():
    w = world()
    w.write(batch_of(3))
    log = w.log().log
    w.replicas.lead(PARTITION, TopicId(TOPIC_ID), log, LeaderEpoch(8))
    w.write(batch_of(2))
    (row,) = rows(fetch(w, wanted(offset=4, last_fetched_epoch=5)))
    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (5, 3)
    assert row.records == b""
    (row,) = rows(fetch(w, wanted(offset=3, last_fetched_epoch=5)))
    assert row.diverging_epoch.epoch == -1
    (row,) = rows(fetch(w, wanted(offset=3, last_fetched_epoch=9)))
    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_followers_are_not_known_here():
    w = world()
    for version, fields in (
        (14, {"replica_id": 3}),
        (15, {"replica_state": ReplicaState(replica_id=3, replica_epoch=1)}),
    ):
        (row,) = rows(fetch(w, wanted(), version=version, **fields))
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Waiting.


def test_a_fetch_waits_for_records():
    w = world()
    assert fetch(w, wanted()) is None
    assert len(w.broker.parking) == 1
    other = Connection()
    w.produce_with(other, batch_of())
    assert offsets(rows(answered(w))[0]) == [0]
    w.environment.run(1.0)
    assert not w.connection.answers
    assert len(w.broker.parking) == 0


def test_a_fetch_waits_no_longer_than_it_says():
    w = world()
    assert fetch(w, wanted(), max_wait_ms=300) is None
    w.environment.run(0.29)
    assert not w.connection.answers
    w.environment.run(0.02)
    (row,) = rows(answered(w))
    assert (row.error_code, row.records) == (0, b"")
    (row,) = rows(fetch(w, wanted(), max_wait_ms=0))
    assert row.records == b""


def test_a_fetch_waits_for_min_bytes_in_all_partitions_together():
    w = world(2)
    size = len(batch_of())
    assert fetch(w, wanted(0), wanted(1), min_bytes=2 * size) is None
    w.produce_with(Connection(), batch_of(), 0)
    assert not w.connection.answers
    w.produce_with(Connection(), batch_of(), 1)
    assert [offsets(row) for row in rows(answered(w))] == [[0], [0]]


def test_a_fetch_does_not_wait_at_the_end_of_a_segment():
    w = world(config=LogConfig(segment_bytes=300))
    for _ in range(4):
        w.write(batch_of())
    assert len(w.log().log.segments) > 1
    (row,) = rows(fetch(w, wanted(), min_bytes=100_000))
    assert offsets(row)


def test_a_fetch_is_woken_once_per_turn(monkeypatch):
    w = world(2)
    assert fetch(w, wanted(0), wanted(1), min_bytes=1_000_000) is None
    looks = []
    parked = next(iter(w.replicas.get(PARTITION).readers))
    monkeypatch.setattr(type(parked), "look_again", lambda self: looks.append(self))  # noqa: PLW0108
    for index in (0, 1, 0):
        w.produce_later(Connection(), batch_of(), index)
    w.flush()
    assert looks == [parked]


def test_records_that_are_not_stored_are_not_seen():
    w = world(durability=Durability.FSYNC)
    assert fetch(w, wanted()) is None
    w.produce_with(Connection(), batch_of())
    assert not w.connection.answers
    w.sync()
    assert offsets(rows(answered(w))[0]) == [0]


def test_errors_are_answered_at_once():
    w = world(2)
    assert rows(fetch(w, wanted(0), wanted(1, 7)))[1].error_code
    assert fetch(world(), wanted(0), wanted(9)) is None, "but not for what nobody has"


@pytest.mark.parametrize("what", ["offline", "remove"])
def test_who_waits_hears_when_the_partition_goes(what):
    w = world()
    assert fetch(w, wanted()) is None
    getattr(w.replicas, what)(PARTITION)
    w.flush()
    assert rows(answered(w))[0].error_code in (
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )


def test_a_new_leader_epoch_wakes_who_knows_the_old():
    w = world()
    assert fetch(w, wanted(current_leader_epoch=5)) is None
    w.replicas.lead(PARTITION, TopicId(TOPIC_ID), w.log().log, LeaderEpoch(6))
    w.flush()
    assert rows(answered(w))[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_nobody_waits_for_a_peer_that_is_gone():
    w = world()
    fetch(w, wanted())
    w.last_call.on_close()
    w.produce_with(Connection(), batch_of())
    assert (w.logs.loads, len(w.broker.parking)) == (0, 0)


def test_nobody_begins_to_wait_for_a_peer_that_is_gone():
    w = world(config=LogConfig(segment_bytes=200))
    for _ in range(3):
        w.write(batch_of())
    w.disk.cold.update(segment.path for segment in w.log().log.segments)
    fetch(w, wanted(offset=1), min_bytes=1 << 19, max_wait_ms=1 << 30)
    w.last_call.on_close()
    w.logs.catch_up()
    assert (w.logs.loads, len(w.broker.parking)) == (0, 0)


def test_who_waits_hears_when_the_topic_is_deleted():
    w = world()
    fetch(w, wanted())
    w.broker.image.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
    w.replicas.remove(PARTITION)
    w.flush()
    assert rows(answered(w))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_all_who_wait_are_answered_when_the_broker_stops():
    w = world()
    connections = [Connection() for _ in range(3)]
    for connection in connections:
        fetch(w, wanted(), connection=connection, max_wait_ms=60_000)
    w.broker.parking.let_go()
    assert [len(each.answers) for each in connections] == [1, 1, 1]
    assert len(w.broker.parking) == 0


def test_a_fetch_that_fails_while_it_waits_is_answered_and_disturbs_no_other(monkeypatch):
    w = world()
    fails, works = Failing(), Connection()
    for connection in (fails, works):
        fetch(w, wanted(), connection=connection)
    find = fetch_module.find_plain
    calls = []

    def find_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("oops")
        return find(*arguments)

    monkeypatch.setattr(fetch_module, "find_plain", find_once)
    w.produce_with(Connection(), batch_of())
    assert [str(error) for error in fails.failures] == ["oops"]
    assert len(works.answers) == 1


class Failing(Connection):
    """Notes failures, as a connection does."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = []

    def failed(self, _call, error) -> None:
        self.failures.append(error)


def test_a_thousand_waiting_fetches_are_woken_in_slices():
    w = world()
    connections = [Connection() for _ in range(1000)]
    for connection in connections:
        fetch(w, wanted(), connection=connection)
    w.produce_later(Connection(), batch_of())
    w.write_staged()
    w.broker.parking.settle()
    assert 0 < sum(len(each.answers) for each in connections) < 1000
    w.flush()
    assert all(len(each.answers) == 1 for each in connections)


# Sessions.


def test_a_session_answers_with_changes_only():
    w = world(2)
    response = fetch(w, wanted(0), wanted(1), session_epoch=0, max_wait_ms=0)
    session = response.session_id
    assert session
    assert len(rows(response)) == 2
    response = fetch(w, session_id=session, session_epoch=1, max_wait_ms=0)
    assert (response.session_id, rows(response)) == (session, [])
    w.write(batch_of(), 1)
    (row,) = rows(fetch(w, session_id=session, session_epoch=2))
    assert (row.partition_index, offsets(row)) == (1, [0])
    response = fetch(w, wanted(1, 1), session_id=session, session_epoch=3, max_wait_ms=0)
    assert rows(response) == []


def test_a_session_waits_and_wakes():
    w = world(2)
    session = fetch(w, wanted(0), wanted(1), session_epoch=0, max_wait_ms=0).session_id
    assert fetch(w, session_id=session, session_epoch=1) is None
    w.produce_with(Connection(), batch_of(), 1)
    (row,) = rows(answered(w))
    assert row.partition_index == 1


def test_what_had_something_goes_behind_the_others():
    w = world(3)
    for index in range(3):
        w.write(batch_of(value=b"x" * 1000), index)
    everything = [wanted(index) for index in range(3)]
    response = fetch(w, *everything, session_epoch=0, max_bytes=1000)
    served = []
    for epoch in range(1, 4):
        response = fetch(w, session_id=response.session_id, session_epoch=epoch, max_bytes=1000)
        served += [row.partition_index for row in rows(response) if row.records]
    assert sorted(served) == [0, 1, 2]


def test_without_a_session_the_next_fetch_begins_where_there_was_no_room():
    w = world(3)
    for index in range(3):
        w.write(batch_of(value=b"x" * 1000), index)
    served = []
    for _ in range(3):
        response = fetch(
            w, *[wanted(index) for index in range(3)], session_epoch=-1, max_bytes=1000
        )
        served += [row.partition_index for row in rows(response) if row.records]
    assert served == [0, 1, 2]


def test_forgotten_partitions():
    w = world(2)
    session = fetch(w, wanted(0), wanted(1), session_epoch=0, max_wait_ms=0).session_id
    forgotten = [ForgottenTopic(topic_id=TOPIC_ID, partitions=[0])]
    fetch(
        w,
        session_id=session,
        session_epoch=1,
        forgotten_topics_data=forgotten,
        max_wait_ms=0,
    )
    w.write(batch_of(), 0)
    response = fetch(w, session_id=session, session_epoch=2, max_wait_ms=0)
    assert rows(response) == []


def test_session_errors():
    w = world()
    session = fetch(w, wanted(), session_epoch=0, max_wait_ms=0).session_id
    unknown = fetch(w, session_id=session + 1, session_epoch=1)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    wrong = fetch(w, session_id=session, session_epoch=7)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    names = fetch(w, session_id=session, session_epoch=1, version=12)
    assert names.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert len(w.broker.fetch_sessions) == 1
    assert fetch(w, session_id=session, session_epoch=-1, max_wait_ms=0).session_id == 0
    assert len(w.broker.fetch_sessions) == 0


def test_errors_are_told_again_and_their_end_too():
    w = world()
    w.replicas.remove(PARTITION)
    response = fetch(w, wanted(), session_epoch=0)
    session = response.session_id
    assert rows(response)[0].error_code
    assert rows(fetch(w, session_id=session, session_epoch=1))[0].error_code
    w.replicas.lead(PARTITION, TopicId(TOPIC_ID), w.log().log, LeaderEpoch(5))
    response = fetch(w, session_id=session, session_epoch=2, max_wait_ms=0)
    assert rows(response)[0].error_code == 0


def test_topic_ids_that_come_to_be_known():
    w = World()
    unknown = {"topic_id": TOPIC_ID, "topic": ""}
    response = fetch(w, wanted(), session_epoch=0, **unknown)
    assert rows(response)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    w.create()
    w.write(batch_of())
    (row,) = rows(fetch(w, session_id=response.session_id, session_epoch=1))
    assert offsets(row) == [0]
