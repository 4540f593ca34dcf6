"""The consumer against brokers that move leaders, lose sessions and cut logs."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import KafkaError, NoOffsetError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.unit.client.fake_cluster import TOPIC, FakeCluster

KEY = (TOPIC, 0)
SECONDS_MAX = 20

Story = Callable[[FakeCluster, AsyncConsumer], Awaitable[None]]


def play(story: Story, cluster: FakeCluster | None = None, **settings: object) -> FakeCluster:
    brokers = cluster or FakeCluster()

    async def run() -> None:
        async with brokers, asyncio.timeout(SECONDS_MAX):
            given = {"auto_offset_reset": "earliest", "retry_backoff_ms": 1} | settings
            async with AsyncConsumer(brokers.servers_text, **given) as consumer:
                consumer.assign([KEY])
                await story(brokers, consumer)

    asyncio.run(run())
    return brokers


async def _values(consumer: AsyncConsumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for record in await consumer.poll()]
    return values


@pytest.mark.parametrize("tells_leader", [True, False])
@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_leader_that_moves_is_followed(code: ErrorCode, tells_leader: bool) -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]
        cluster.tells_leader = tells_leader
        if tells_leader:
            cluster.known_leader = (1, 0)  # the answer knows better than the metadata
        cluster.leader, cluster.leader_epoch = 2, 1
        cluster.errors.append(code)
        cluster.append([b"b"])
        assert await _values(consumer, 1) == [b"b"]
        assert await consumer.position(KEY) == 2

    cluster = play(story)
    assert cluster.fetches[-1].node_id == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_passes_is_asked_for_again(code: ErrorCode) -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.errors.extend([code, code])
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]

    play(story)


def test_a_partition_without_a_leader_is_asked_for_until_it_has_one() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]
        cluster.leader, cluster.leader_epoch, cluster.tells_leader = -1, 1, False
        cluster.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert await consumer.poll(timeout_ms=100) == []
        cluster.leader, cluster.leader_epoch = 2, 2
        cluster.append([b"b"])
        assert await _values(consumer, 1) == [b"b"]

    play(story)


def test_a_session_says_little_and_survives_being_forgotten() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]
        assert await consumer.poll(200) == []
        assert [fetch.epoch for fetch in cluster.fetches[:3]] == [0, 1, 2]
        assert not cluster.fetches[2].partitions, "nothing has changed"
        cluster.sessions.clear()
        cluster.append([b"b"])
        assert await _values(consumer, 1) == [b"b"]

    cluster = play(story)
    assert [fetch.epoch for fetch in cluster.fetches].count(0) == 2


def test_a_lost_connection_is_made_again() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]
        for writer in cluster.writers:
            writer.transport.abort()
        cluster.append([b"b"])
        assert await _values(consumer, 1) == [b"b"]

    play(story)


def test_the_next_answer_is_fetched_ahead_and_not_more() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a", b"b"])
        assert [record.value for record in await consumer.poll()] == [b"a"]
        cluster.append([b"c", b"d"])
        while consumer._queue.answers_from(1) < 2:
            await asyncio.sleep(0)
        cluster.append([b"e"])
        assert [record.value for record in await consumer.poll()] == [b"b"]
        assert not consumer._fetcher._tasks, "two answers are enough"
        assert await _values(consumer, 3) == [b"c", b"d", b"e"]

    play(story, max_poll_records=1)


def test_a_seek_does_not_wait_for_a_long_poll() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a", b"b"])
        assert await _values(consumer, 2) == [b"a", b"b"]
        consumer.seek(KEY, 1)
        assert await _values(consumer, 1) == [b"b"]
        assert await consumer.position(KEY) == 2

    play(story)


def test_a_log_that_was_cut_is_read_again_from_there() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        cluster.append([b"lost"])
        assert await _values(consumer, 2) == [b"a", b"lost"]
        del cluster.batches[1]
        cluster.leader_epoch = 3
        cluster.append([b"b", b"c"])
        cluster.rows.append(
            PartitionData(partition_index=0, diverging_epoch=EpochEndOffset(epoch=0, end_offset=1))
        )
        assert await _values(consumer, 2) == [b"b", b"c"]

    cluster = play(story)
    assert any(
        fetch.partitions[0].last_fetched_epoch == 0 for fetch in cluster.fetches if fetch.partitions
    )


def test_a_nearer_follower_is_read_from() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.rows.append(PartitionData(partition_index=0, preferred_read_replica=2))
        while not any(fetch.node_id == 2 for fetch in cluster.fetches):
            await consumer.poll(10)
        cluster.append([b"a"])
        # The fake follower sends its reader back to the leader.
        assert await _values(consumer, 1) == [b"a"]

    play(story, client_rack="here")


def test_another_topic_of_the_same_name_is_read_from_its_beginning() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a", b"b"])
        assert await _values(consumer, 2) == [b"a", b"b"]
        cluster.topic_id = bytes(range(100, 116))
        cluster.batches.clear()
        cluster.append([b"new", b"newer", b"newest"])
        assert await _values(consumer, 3) == [b"new", b"newer", b"newest"]

    play(story)


def test_another_topic_of_the_same_name_is_an_error_without_a_policy() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        consumer.seek(KEY, 0)
        cluster.append([b"a", b"b"])
        assert await _values(consumer, 2) == [b"a", b"b"]
        cluster.topic_id = bytes(range(100, 116))
        with pytest.raises(NoOffsetError, match="topic t was created anew"):
            await _values(consumer, 1)
        consumer.seek(KEY, 1)
        assert await _values(consumer, 1) == [b"b"]

    play(story, auto_offset_reset="none")


def test_a_damaged_answer_is_told() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        damaged = bytearray(cluster.batches[0])
        damaged[-2] ^= 1
        cluster.batches[0] = bytes(damaged)
        for _ in range(2):
            with pytest.raises(KafkaError, match="partition t-0 at offset 0: CORRUPT_MESSAGE"):
                await consumer.poll()
        damaged[16] = 1  # a format that Kafka 4 no longer has
        cluster.rows.append(PartitionData(partition_index=0, records=bytes(damaged)))
        with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
            await _values(consumer, 1)

    play(story)


def test_checksums_are_not_looked_at_if_nobody_wants() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.append([b"a"])
        damaged = bytearray(cluster.batches[0])
        damaged[-2] ^= 1
        cluster.batches[0] = bytes(damaged)
        assert len(await consumer.poll()) == 1

    play(story, check_crcs=False)


def test_what_is_not_allowed_is_told() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.errors.append(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        cluster.append([b"a"])
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await consumer.poll()
        assert await _values(consumer, 1) == [b"a"]

    play(story)


def test_an_offset_that_cannot_be_found_now_is_looked_up_again_by_itself() -> None:
    async def story(cluster: FakeCluster, consumer: AsyncConsumer) -> None:
        cluster.offset_errors.extend([ErrorCode.LEADER_NOT_AVAILABLE] * 3)
        cluster.append([b"a"])
        assert await _values(consumer, 1) == [b"a"]

    play(story)
