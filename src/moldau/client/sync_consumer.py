"""The synchronous consumer: it waits for what it is asked for."""

from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from moldau._native.fetched import Record
from moldau.client.consumer import AsyncConsumer
from moldau.client.group_metadata import GroupMetadata
from moldau.client.shared_cluster import SharedCluster
from moldau.client.sync import Synchronous, doing, waiting
from moldau.client.user_thread import run_listening
from moldau.kernel.ids import TopicPartition

Result = TypeVar("Result")


class Consumer(Synchronous[AsyncConsumer]):
    """Reads partitions, from any offset or time on, and waits for what it is asked for.

    with Consumer("localhost:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign_topics("clicks")
        for record in consumer:
            print(record.value)
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        super().__init__(AsyncConsumer(servers, config=config, cluster=cluster, **settings))

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        # What a subscriber is told is told in this thread, where he may commit or seek.
        return run_listening(work, self._background.loop)

    subscribe = doing(AsyncConsumer.subscribe)
    unsubscribe = waiting(AsyncConsumer.unsubscribe)
    commit = waiting(AsyncConsumer.commit)
    committed = waiting(AsyncConsumer.committed)
    assign = doing(AsyncConsumer.assign)
    assign_topics = waiting(AsyncConsumer.assign_topics)
    seek = doing(AsyncConsumer.seek)
    seek_to_beginning = doing(AsyncConsumer.seek_to_beginning)
    seek_to_end = doing(AsyncConsumer.seek_to_end)
    seek_to_time = doing(AsyncConsumer.seek_to_time)
    position = waiting(AsyncConsumer.position)
    pause = doing(AsyncConsumer.pause)
    resume = doing(AsyncConsumer.resume)
    beginning_offsets = waiting(AsyncConsumer.beginning_offsets)
    end_offsets = waiting(AsyncConsumer.end_offsets)
    offsets_for_times = waiting(AsyncConsumer.offsets_for_times)
    poll_arrow = waiting(AsyncConsumer.poll_arrow)

    @property
    def subscription(self) -> frozenset[str]:
        """Return the topics that are subscribed to; of a broker's pattern they are not known."""
        return self._client.subscription

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read."""
        return self._client.assignment

    @property
    def group_metadata(self) -> GroupMetadata:
        """Return how this consumer is known in its group: what transactional producers are told."""
        return self._client.group_metadata

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return self._client.paused

    def poll(self, timeout_ms: int | None = None) -> list[Record]:
        """Return the next records, `max.poll.records` at most, when there are some.

        Without records, nothing is returned after the timeout; None waits as long as it takes.
        """
        # Who is interrupted here loses nothing: what has come waits for the next poll.
        count = self._client.settings.max_poll_records
        self._run(self._client.read_ahead(timeout_ms, count))
        return self._client.take_unread()

    def __iter__(self) -> Iterator[Record]:
        """Iterate over records for ever; who leaves and comes back goes on with the next one."""
        unread = self._client.unread
        while True:
            while unread:
                yield unread.popleft()
            self._run(self._client.read_ahead(None, self._client.iterated_records))
