"""Requests that only a partition's leader answers: sent to each leader at once, and again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from moldau.client.clock import loop_clock
from moldau.client.cluster import NO_LEADER, Backoff, Cluster, Partition
from moldau.client.connection import Connection
from moldau.client.errors import KafkaError, RequestTimeoutError, UnreachableError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")

LeaderAnswers = dict[TopicPartition, Found | KafkaError]
AskLeader = Callable[
    [Connection, Mapping[TopicPartition, tuple[Wanted, int]]], Awaitable[LeaderAnswers[Found]]
]
"""Asks one leader about its partitions, each with what is wanted and the leader's epoch."""


async def ask_leaders(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, Wanted],
    ask: AskLeader[Wanted, Found],
    *,
    timeout_ms: int | None = None,
) -> LeaderAnswers[Found]:
    """Ask the leaders until each partition has an answer or an error that stays.

    When the time is up, what is left has its last error; no time is enough for one attempt.
    """
    answers: LeaderAnswers[Found] = {}
    left = dict(wanted)
    limit_ms = cluster.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
    monotonic = loop_clock().monotonic
    deadline = monotonic() + limit_ms / 1000
    backoff = Backoff(cluster.settings)
    while True:
        groups, without = await _by_leader(cluster, left)
        found = await asyncio.gather(
            *(_ask_one(cluster, node_id, group, ask) for node_id, group in groups.items())
        )
        for each in [without, *found]:
            answers |= each
        left = {key: left[key] for key in left if _may_pass(answers[key])}
        wait = backoff.next_seconds()
        if not left or monotonic() + wait >= deadline:
            return answers
        for partition in left:
            cluster.forget(partition.topic)
        await asyncio.sleep(wait)


class AbsentPartitionError(KafkaError):
    """A partition that the cluster's metadata does not have: asking again would not help.

    What a leader does not know is another matter: it may not have heard of it yet.
    """

    @property
    def retriable(self) -> bool:
        """No."""
        return False


def _may_pass(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.retriable


async def _by_leader(
    cluster: Cluster, wanted: Mapping[TopicPartition, Wanted]
) -> tuple[dict[int, dict[TopicPartition, tuple[Wanted, int]]], dict[TopicPartition, KafkaError]]:
    """Group partitions by who leads them; return also why some cannot be asked for."""
    groups: dict[int, dict[TopicPartition, tuple[Wanted, int]]] = {}
    without: dict[TopicPartition, KafkaError] = {}
    for key, what in wanted.items():
        try:
            found = await find_partition(cluster, key)
        except KafkaError as error:
            without[key] = error
            continue
        if found.leader == NO_LEADER:
            without[key] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {key}")
        else:
            groups.setdefault(found.leader, {})[key] = what, found.leader_epoch
    return groups, without


async def find_partition(cluster: Cluster, key: TopicPartition) -> Partition:
    """Return where a partition is; `KafkaError` if its topic does not have it."""
    try:
        topic = await cluster.topic(key.topic)
    except KafkaError as error:
        raise AbsentPartitionError(error.code, f"partition {key}") from error
    if not 0 <= key.partition < len(topic.partitions):
        raise AbsentPartitionError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"partition {key}",
            f"the topic has {len(topic.partitions)}",
        )
    return topic.partitions[key.partition]


async def _ask_one(
    cluster: Cluster,
    node_id: int,
    group: Mapping[TopicPartition, tuple[Wanted, int]],
    ask: AskLeader[Wanted, Found],
) -> Mapping[TopicPartition, Found | KafkaError]:
    try:
        return await ask(await cluster.connect(node_id), group)
    except KafkaError as error:
        return dict.fromkeys(group, error)
    except (UnreachableError, RequestTimeoutError) as error:
        code = ErrorCode.NETWORK_EXCEPTION
        return {key: KafkaError(code, f"partition {key}", str(error)) for key in group}


def by_topic(partitions: Mapping[TopicPartition, Wanted]) -> dict[str, dict[int, Wanted]]:
    """Group what belongs to partitions by their topics, as requests do."""
    topics: dict[str, dict[int, Wanted]] = {}
    for key, what in partitions.items():
        topics.setdefault(key.topic, {})[key.partition] = what
    return topics
