"""The asynchronous consumer: records or Arrow columns of chosen partitions, or a group's."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final, Self, TypeVar

from moldau._native.fetched import Record
from moldau.client.arrow_records import ArrowRecords
from moldau.client.cluster import Cluster
from moldau.client.consumer_group import ConsumerGroupClient, Listeners, RebalanceListener
from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.descriptions import ListedOffset
from moldau.client.errors import ClientError, ClosedError, KafkaError, RequestTimeoutError
from moldau.client.fetch_queue import FetchQueue
from moldau.client.fetcher import Fetcher
from moldau.client.group_metadata import GroupMetadata
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.client.offset_lookup import EARLIEST, ISOLATION_LEVELS, LATEST, list_offsets
from moldau.client.offset_reset import OffsetReset
from moldau.client.position_finder import PositionFinder
from moldau.client.positions import NO_EPOCH, Positions
from moldau.client.settings import load
from moldau.client.shared_cluster import SharedCluster
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

PartitionLike = TopicPartition | tuple[str, int]
"""A partition: `TopicPartition("clicks", 0)`, or just `("clicks", 0)`."""

ITERATED_RECORDS: Final = 5_000
"""How many records an iteration reads at once, if so many have come and no group is waiting."""

Taken = TypeVar("Taken", bound="list[Record] | deque[Record] | ArrowRecords")


class AsyncConsumer:
    """Reads partitions, from any offset or time on.

        async with AsyncConsumer("localhost:9092", auto_offset_reset="earliest") as consumer:
            await consumer.assign_topics("clicks")
            async for record in consumer:
                print(record.value)

    With a `group_id` it may share topics with others instead: `consumer.subscribe("clicks")`.

    Nothing is fetched before the first poll; then the next answer is on its way while records are
    handed out. An error that a poll raises leaves the consumer usable: poll again, or seek.
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        self.settings = load(ConsumerSettings, servers, config, settings)
        self._cluster = cluster or Cluster(self.settings)
        self._positions = Positions(OffsetReset.parse(self.settings.auto_offset_reset))
        self._group = None
        if self.settings.group_id:
            self._group = ConsumerGroupClient(
                self._cluster, self.settings, self._positions, self._consumed, self._news_came
            )
        committed = None if self._group is None else self._group.committed
        self._finder = PositionFinder(self._cluster, self.settings, self._positions, committed)
        self._queue = FetchQueue(self._positions)
        self._fetcher = Fetcher(
            self._cluster, self.settings, self._positions, self._queue, self._go_on
        )
        self._finding: asyncio.Task[None] | None = None
        self._failure: ClientError | None = None
        self._news = asyncio.Event()
        self._is_closed = False
        self._is_changed = False
        """Whether the user has said something since the brokers were last asked."""
        self.unread: deque[Record] = deque()
        """What was read and not handed out yet."""

    async def start(self) -> None:
        """Find the cluster; `async with` does it."""
        await self._cluster.start()

    async def close(self) -> None:
        """Leave the group, give up what is on its way, and hang up; `async with` does it.

        Before, a consumer with `enable.auto.commit` commits what it has handed out.
        """
        if not self._is_closed and self._group is not None:
            try:
                await self._group.close(self._give_back)
            finally:
                await self._hang_up()
        else:
            await self._hang_up()

    async def _hang_up(self) -> None:
        self._is_closed = True
        self._news.set()
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        await self._fetcher.close()
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Which partitions, and from where.

    def assign(self, partitions: Iterable[PartitionLike]) -> None:
        """Read exactly these partitions; those that were read before keep their positions.

        With a `group.id`, others begin where the group has committed.
        """
        if self._group is not None and self._group.is_subscribed:
            raise ValueError("this consumer has subscribed to topics: unsubscribe first")
        self._put_back()
        self._failure = None
        keys = dict.fromkeys(_keys(partitions))
        self._positions.assign(keys, from_committed=self._group is not None)
        for key in keys:
            known = self._cluster.find_topic(key.topic)
            if known is not None and key.partition >= len(known.partitions):
                self._cluster.forget(key.topic)  # it may have grown

    async def assign_topics(self, *names: str) -> None:
        """Read all partitions of these topics; `KafkaError` if there is no such topic."""
        topics = [await self._cluster.topic(name) for name in names]
        self.assign((topic.name, each.index) for topic in topics for each in topic.partitions)

    def subscribe(
        self,
        *topics: str,
        pattern: "str | re.Pattern[str] | None" = None,
        on_assigned: RebalanceListener | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
    ) -> None:
        """Share these topics, or those that a pattern fits as a whole, with the group's members.

        The next poll joins the group. The functions get a set of partitions, in a poll: before it
        hands out records of partitions that came, before partitions are given up (what was handed
        out can still be committed), and when they were lost to others without asking.
        With `group.protocol=consumer` the broker evaluates the pattern, by RE2's rules.
        """
        group = self._get_group()
        if not all(isinstance(each, str) for each in topics):
            raise TypeError('topics are texts: subscribe("one", "another")')
        if bool(topics) == (pattern is not None):
            raise ValueError("subscribe to topics or to a pattern")
        if self._positions and not group.is_subscribed:
            raise ValueError("partitions are assigned to this consumer: unsubscribe first")
        compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
        self._failure = None
        listeners = Listeners(on_assigned, on_revoked, on_lost)
        group.subscribe(frozenset(topics), compiled, listeners)

    async def unsubscribe(self) -> None:
        """Leave the group, or read none of the assigned partitions any more."""
        if self._group is not None and self._group.is_subscribed:
            await self._group.unsubscribe(self._give_back)
        else:
            self.assign([])

    @property
    def subscription(self) -> frozenset[str]:
        """Return the topics that are subscribed to; of a broker's pattern they are not known."""
        return frozenset() if self._group is None else self._group.topics

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read."""
        return frozenset(state.key for state in self._positions)

    # What the group has read.

    async def commit(
        self,
        offsets: Mapping[PartitionLike, OffsetAndMetadata | int] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit these offsets of next records, or those behind all that was handed out.

        `CommitFailedError` if the group has given the partitions to others meanwhile.
        """
        group = self._get_group()
        wanted = self._consumed()
        if offsets is not None:
            wanted = {
                TopicPartition(*key): what
                if isinstance(what, OffsetAndMetadata)
                else OffsetAndMetadata(what)
                for key, what in offsets.items()
            }
        await group.commit(wanted, timeout_ms)

    async def committed(
        self, partitions: Iterable[PartitionLike], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed of these partitions, None where that is nothing."""
        return await self._get_group().committed(_keys(partitions), timeout_ms)

    @property
    def group_metadata(self) -> GroupMetadata:
        """Return how this consumer is known in its group: what transactional producers are told."""
        return self._get_group().metadata

    def _get_group(self) -> ConsumerGroupClient:
        if self._is_closed:
            raise ClosedError("the consumer is closed")
        if self._group is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "this consumer has no group")
        return self._group

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return how far the user has come in each partition that has a position."""
        unread: dict[TopicPartition, int] = {}
        for record in self.unread:
            unread.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        offsets = {}
        for state in self._positions:
            if state.position is None:
                continue
            offset = unread.get(state.key, state.position)
            # The epoch is that of the last that was fetched: it may be too new for what was read.
            epoch = state.last_epoch if offset == state.fetch_offset else NO_EPOCH
            offsets[state.key] = OffsetAndMetadata(offset, leader_epoch=epoch)
        return offsets

    # Places in the assigned partitions.

    def seek(self, partition: PartitionLike, offset: int, *, until: int | None = None) -> None:
        """Go on at an offset of a partition; a poll returns nothing once all are read `until`."""
        key = TopicPartition(*partition)
        self._put_back(key)
        self._positions.seek(key, offset, until)

    def seek_to_beginning(self, *partitions: PartitionLike) -> None:
        """Go on at the first record of these partitions, of all for none."""
        self._seek_to(OffsetReset(EARLIEST), partitions)

    def seek_to_end(self, *partitions: PartitionLike) -> None:
        """Go on behind the last record of these partitions, of all for none."""
        self._seek_to(OffsetReset(LATEST), partitions)

    def seek_to_time(self, timestamp_ms: int, *partitions: PartitionLike) -> None:
        """Go on at the first record that is as late, or at the end, in these or all partitions."""
        if timestamp_ms < 0:
            raise ValueError(f"{timestamp_ms} is no time in milliseconds since 1970")
        self._seek_to(OffsetReset(timestamp_ms), partitions)

    def _seek_to(self, start: OffsetReset, partitions: Iterable[PartitionLike]) -> None:
        for key in _keys(partitions) or list(self.assignment):
            self._put_back(key)
            self._positions.seek_to(key, start)

    async def position(self, partition: PartitionLike) -> int:
        """Return the offset of the next record of a partition, when it is known.

        `RequestTimeoutError` if it is not after `default.api.timeout.ms`.
        """
        key = TopicPartition(*partition)
        self._positions.get(key)
        for record in self.unread:
            if (record.topic, record.partition) == key:
                return record.offset
        limit_ms = self.settings.default_api_timeout_ms
        deadline = asyncio.get_running_loop().time() + limit_ms / 1000
        while (known := self._positions.get(key).position) is None:
            self._news.clear()  # or what has come before would end the wait, again and again
            if not await self._wait(deadline):
                raise RequestTimeoutError(
                    f"partition {key}: where to go on is not known after "
                    f"default.api.timeout.ms={limit_ms}"
                )
        return known

    def pause(self, *partitions: PartitionLike) -> None:
        """Hand out nothing of these partitions until they are resumed."""
        for key in _keys(partitions):
            self._put_back(key)
            self._positions.pause(key)

    def resume(self, *partitions: PartitionLike) -> None:
        """Go on with these partitions."""
        self._is_changed = True
        for key in _keys(partitions):
            self._positions.resume(key)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return frozenset(state.key for state in self._positions if state.is_paused)

    # Offsets of any partition.

    async def beginning_offsets(
        self, partitions: Iterable[PartitionLike]
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each of these partitions has."""
        found = await self._list(dict.fromkeys(_keys(partitions), EARLIEST))
        return {key: listed.offset for key, listed in found.items()}

    async def end_offsets(self, partitions: Iterable[PartitionLike]) -> dict[TopicPartition, int]:
        """Return the offset behind the last record that this consumer would see of each."""
        found = await self._list(dict.fromkeys(_keys(partitions), LATEST))
        return {key: listed.offset for key, listed in found.items()}

    async def offsets_for_times(
        self, timestamps_ms: Mapping[PartitionLike, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """Return the first record that is as late in each partition, None if none is."""
        found = await self._list(
            {TopicPartition(*key): timestamps_ms[key] for key in timestamps_ms}
        )
        return {key: listed if listed.offset >= 0 else None for key, listed in found.items()}

    async def _list(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset]:
        level = ISOLATION_LEVELS[self.settings.isolation_level]
        found: dict[TopicPartition, ListedOffset] = {}
        answers = await list_offsets(self._cluster, timestamps, isolation_level=level)
        for key, answer in answers.items():
            if isinstance(answer, KafkaError):
                raise answer
            found[key] = answer
        return found

    # Records.

    async def poll(self, timeout_ms: int | None = None) -> list[Record]:
        """Return the next records, `max.poll.records` at most, when there are some.

        Without records, nothing is returned after the timeout; None waits as long as it takes.
        """
        if self.unread and self._group is None:
            return self.take_unread()
        count = self.settings.max_poll_records
        take = self._queue.take_records
        return await self._next(lambda: self.take_unread() or take(count), timeout_ms)

    async def poll_arrow(self, timeout_ms: int | None = None) -> ArrowRecords:
        """Return all records that have come as Arrow columns, when there are some."""
        self._put_back()
        return await self._next(lambda: ArrowRecords(self._queue.take_columns()), timeout_ms)

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over records for ever; who leaves and comes back goes on with the next one."""
        while True:
            while self.unread:
                yield self.unread.popleft()
            await self.read_ahead(None, self.iterated_records)

    @property
    def iterated_records(self) -> int:
        """How many records an iteration reads at once: in a group, no more than a poll does."""
        return ITERATED_RECORDS if self._group is None else self.settings.max_poll_records

    async def read_ahead(self, timeout_ms: int | None, count: int) -> None:
        """Read records for whoever takes the unread ones next, unless there are some."""
        if self._group is None and self.unread:
            return

        def take() -> deque[Record]:
            if not self.unread:
                self.unread.extend(self._queue.take_records(count))
            return self.unread

        await self._next(take, timeout_ms)

    def take_unread(self) -> list[Record]:
        """Return what is unread, `max.poll.records` at most."""
        count = self.settings.max_poll_records
        if len(self.unread) > count:
            return [self.unread.popleft() for _ in range(count)]
        records = list(self.unread)
        self.unread.clear()
        return records

    async def _next(self, take: Callable[[], Taken], timeout_ms: int | None) -> Taken:
        if self._group is None:
            return await self._take_next(take, timeout_ms)
        self._group.begin_poll()
        try:
            return await self._take_next(take, timeout_ms)
        finally:
            self._group.end_poll()

    async def _take_next(self, take: Callable[[], Taken], timeout_ms: int | None) -> Taken:
        loop = asyncio.get_running_loop()
        deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        # What is at hand is returned without waiting; the loop is to read on all the same.
        await asyncio.sleep(0)
        while True:
            if self._group is not None and self._group.has_call:
                await self._group.serve(self._give_back)
                self._is_changed = True
            self._require_ready()
            self._news.clear()
            drained = self._queue.drained_count
            taken = take()
            if not len(taken):
                if self._positions.are_read or not await self._wait(deadline):
                    return taken
                continue
            if self._is_changed or self._queue.drained_count != drained:
                self._pump()
            return taken

    async def _wait(self, deadline: float | None) -> bool:
        """Wait until something has happened; False when the time is up."""
        self._require_ready()
        self._pump()
        try:
            async with asyncio.timeout_at(deadline):
                await self._news.wait()
        except TimeoutError:
            return False
        self._require_ready()
        return True

    def _require_ready(self) -> None:
        if self._is_closed:
            raise ClosedError("the consumer is closed")
        if self._group is not None and (failure := self._group.take_failure()) is not None:
            raise failure
        is_subscribed = self._group is not None and self._group.is_subscribed
        if not self._positions and not is_subscribed:
            raise ValueError("nothing is assigned to this consumer: assign partitions or topics")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # Behind the scenes.

    def _go_on(self) -> None:
        """Something has happened: ask for more first, then wake who reads what came."""
        if not self._is_closed:
            self._pump()
        self._news.set()

    def _news_came(self) -> None:
        self._news.set()

    def _pump(self) -> None:
        """Have done whatever can be done now."""
        self._is_changed = False
        self._fetcher.pump()
        if self._finding is None and self._failure is None and self._finder.has_work():
            self._finding = asyncio.get_running_loop().create_task(self._find())

    async def _find(self) -> None:
        try:
            await self._finder.run()
        except ClientError as error:
            self._failure = error
        self._finding = None
        wait = self._finder.wait_seconds()
        if wait is not None:
            asyncio.get_running_loop().call_later(wait, self._go_on)
        self._go_on()

    def _give_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Have unread records of partitions forgotten that others will read."""
        for key in partitions:
            self._put_back(key)

    def _put_back(self, *keys: TopicPartition) -> None:
        """Have unread records of these partitions, of all for none, fetched again."""
        self._is_changed = True
        kept: list[Record] = []
        first: dict[TopicPartition, int] = {}
        for record in self.unread:
            key = TopicPartition(record.topic, record.partition)
            if keys and key not in keys:
                kept.append(record)
            else:
                first.setdefault(key, record.offset)
        for key, offset in first.items():
            state = self._positions.find(key)
            if state is not None:
                self._positions.rewind(state, to=offset)
        self.unread.clear()
        self.unread.extend(kept)


def _keys(partitions: Iterable[PartitionLike]) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in partitions]
