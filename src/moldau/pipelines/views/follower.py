"""Reads a topic into a store, in a thread of its own, for as long as it is not told to stop.

    describing -> following -> (new partitions, another topic of the name, an error) -> describing

Whatever goes wrong is said and tried again: a broker that is away, a topic that is not there.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from threading import Condition, Thread
from typing import Final

from moldau._native.fetched import Record
from moldau.client.admin import AsyncAdmin
from moldau.client.cluster import Topic
from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import ClientError, KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.views.answers import ViewProgress
from moldau.pipelines.views.ends import Ends
from moldau.pipelines.views.store import Store
from moldau.pipelines.views.store_file import Say, is_damage
from moldau.protocol.errors import ErrorCode

BATCH_RECORDS: Final = 50_000
"""Of one transaction: a load writes each page of the index once for so many."""
BATCH_BYTES: Final = 16 << 20
POLL_RECORDS: Final = 5_000
FETCH_BYTES: Final = 4 << 20
PAUSE_SECONDS: Final = 0.5
"""How long a poll waits, and how often the ends are looked up."""
HURRY_SECONDS: Final = 0.05
"""The same while it has not caught up: behind the last record there may be a marker."""
DESCRIBE_SECONDS: Final = 5.0
"""How often the topic is looked at: are there more partitions, is it still the same one?"""
RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 5.0
TOMBSTONE_MS: Final = 24 * 60 * 60 * 1000
"""How long tombstones are kept in the store: Kafka's default for `delete.retention.ms`."""
SWEPT_COUNT: Final = 10_000

# A broker that is away is to be told of soon; the client's own minute is for those who wait.
CLIENT: Final[Mapping[str, object]] = {"default.api.timeout.ms": 10_000}
CONSUMER: Final[Mapping[str, object]] = {
    "auto.offset.reset": "none",
    "isolation.level": "read_committed",
    "max.poll.records": POLL_RECORDS,
    "fetch.max.bytes": FETCH_BYTES,
    "max.partition.fetch.bytes": FETCH_BYTES,
}


class Follower:
    """Keeps a store up to date with its topic."""

    def __init__(self, store: Store, topic: str, config: Mapping[str, object], say: Say) -> None:
        self._store = store
        self._topic = topic
        self._config = {**CLIENT, **config}
        self._say = say
        self._changed = Condition()
        self._thread = Thread(target=self._run, name=f"view of {topic}", daemon=True)
        self._cancel: Callable[[], object] | None = None
        self._is_stopping = False
        self._swept_at = 0.0
        self._said: str | None = None
        self._retry_seconds = RETRY_SECONDS
        self.ends = Ends()
        self.skipped_count = 0
        self.error: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what was read is stored, and nothing else."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()
        if self._thread.ident is not None:
            self._thread.join()

    def progress(self) -> ViewProgress:
        """Return how far it has come."""
        positions = self._store.positions
        reached = self.has_caught_up(positions)
        return ViewProgress(positions, self.ends.offsets, reached, self.skipped_count, self.error)

    def has_caught_up(self, positions: Mapping[int, int]) -> bool:
        """Whether these positions are behind all that could be read a moment ago."""
        return self.ends.are_reached(positions, time.monotonic())

    def wait_until_caught_up(self, timeout_seconds: float) -> bool:
        """Wait until everything that can be read now is stored; False if it takes too long."""
        begun = time.monotonic()

        def is_there() -> bool:
            is_news = self.ends.asked_at >= begun
            return self._is_stopping or (is_news and self.has_caught_up(self._store.positions))

        with self._changed:
            return self._changed.wait_for(is_there, timeout_seconds) and not self._is_stopping

    # In its thread.

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._go_on())

    async def _go_on(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None, "asyncio.run makes one"
        with self._changed:
            if self._is_stopping:
                return
            # It is met at an `await`, and no transaction has one in it.
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        while True:
            try:
                await self._follow()
                continue
            # A view that has died would answer with old rows for ever.
            except Exception as error:  # noqa: BLE001 - it is said, and tried again
                self._stumble(error)
            await asyncio.sleep(self._retry_seconds)
            self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)

    def _stumble(self, error: Exception) -> None:
        words = str(error) or type(error).__name__
        if words != self._said:
            self._said = words
            self._say(f"view of topic {self._topic}: {words}; trying again")
        if isinstance(error, sqlite3.Error) and is_damage(error):
            self._store.damage = words
        with self._changed:
            self.error = words
            self.ends = Ends()
            self._changed.notify_all()

    def _is_well(self) -> None:
        """Everything was read: what goes wrong from now on is something new."""
        self.error = self._said = None
        self._retry_seconds = RETRY_SECONDS

    async def _follow(self) -> None:
        """Follow the topic until it must be begun with anew."""
        if self._store.damage is not None:
            self._store.rebuild()
        async with (
            AsyncAdmin(config=self._config) as admin,
            AsyncConsumer(config={**self._config, **CONSUMER}) as consumer,
        ):
            topic = await self._describe(admin)
            if not self._store.adopt(topic.topic_id):
                self._say(f"view of topic {self._topic}: the topic is another one: built anew")
            keys = [TopicPartition(self._topic, each.index) for each in topic.partitions]
            consumer.assign(keys)
            for key in keys:
                # If the log begins later, it is the same as if what is stored were too old.
                consumer.seek(key, self._store.positions.get(key.partition, 0))
            known = (topic.topic_id, len(keys))
            # Beside the reading: a partition without a leader is not to hold up the others.
            watching = asyncio.create_task(self._watch_ends(admin, len(keys)))
            try:
                while self._store.damage is None:
                    await self._read_for_a_while(consumer, admin, watching)
                    topic = await self._describe(admin)
                    if (topic.topic_id, len(topic.partitions)) != known:
                        # With a new consumer: this one may not hear of it for minutes.
                        return
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async def _describe(self, admin: AsyncAdmin) -> Topic:
        described = (await admin.describe_topics([self._topic]))[self._topic]
        if isinstance(described, KafkaError):
            raise described
        return described

    async def _read_for_a_while(
        self, consumer: AsyncConsumer, admin: AsyncAdmin, watching: asyncio.Task[None]
    ) -> None:
        until = time.monotonic() + DESCRIBE_SECONDS
        while time.monotonic() < until and self._store.damage is None:
            if watching.done():
                watching.result()  # it goes on for ever, or raises
            try:
                records = await self._gather(consumer)
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                if not await self._begin_again(consumer, admin):
                    raise
                continue
            await self._store_all(consumer, records)
            self._sweep()

    async def _gather(self, consumer: AsyncConsumer) -> list[Record]:
        """Return what has come, enough for a transaction at most."""
        records = await consumer.poll(int(self._pause_seconds() * 1000))
        size = _size(records)
        more = records
        while more and len(records) < BATCH_RECORDS and size < BATCH_BYTES:
            try:
                more = await consumer.poll(0)
            except ClientError:
                # It comes again, when this is stored.
                break
            size += _size(more)
            records += more
        return records

    async def _store_all(self, consumer: AsyncConsumer, records: list[Record]) -> None:
        known = self._store.positions
        moved: dict[int, int] = {}
        for key in consumer.assignment:
            position = await consumer.position(key)
            if position != known.get(key.partition):
                moved[key.partition] = position
        if moved:
            skipped = self._store.apply(records, moved, now_ms=_now_ms())
            with self._changed:
                self.skipped_count += skipped
                self.error = None
                self._changed.notify_all()

    async def _watch_ends(self, admin: AsyncAdmin, partition_count: int) -> None:
        """Look up again and again where the partitions end."""
        while True:
            asked_at, before = time.monotonic(), self._store.positions
            found = await self._list(admin, range(partition_count), "latest")
            with self._changed:
                self.ends = Ends.of(partition_count, found, asked_at, before)
                if self.has_caught_up(self._store.positions):
                    self._is_well()
                self._changed.notify_all()
            await asyncio.sleep(self._pause_seconds())

    def _pause_seconds(self) -> float:
        return PAUSE_SECONDS if self.has_caught_up(self._store.positions) else HURRY_SECONDS

    async def _begin_again(self, consumer: AsyncConsumer, admin: AsyncAdmin) -> bool:
        """Read partitions anew of which something was deleted or cut before it was read.

        False if it cannot be said now which ones these are.
        """
        partitions = [key.partition for key in consumer.assignment]
        starts = await self._list(admin, partitions, "earliest")
        ends = await self._list(admin, partitions, "latest")
        if not len(starts) == len(ends) == len(partitions):
            return False
        positions = {each: await consumer.position((self._topic, each)) for each in partitions}
        lost = [each for each in partitions if not starts[each] <= positions[each] <= ends[each]]
        # None of them, but the broker says so: somewhere the log was cut, and written again.
        lost = sorted(lost or partitions)
        known = [each for each in lost if self._store.positions.get(each)]
        if known:
            self._say(
                f"view of topic {self._topic}: partition {', '.join(map(str, known))} has lost "
                f"records that the view has not read: built anew from what is left"
            )
        self._store.forget(lost)
        for each in lost:
            consumer.seek((self._topic, each), starts[each])
        return True

    async def _list(
        self, admin: AsyncAdmin, partitions: Iterable[int], where: str
    ) -> dict[int, int]:
        """Return the offsets of those partitions whose leader says them."""
        keys = {TopicPartition(self._topic, each): where for each in partitions}
        found = await admin.list_offsets(keys, isolation_level="read_committed")
        return {
            key.partition: each.offset
            for key, each in found.items()
            if not isinstance(each, KafkaError)
        }

    def _sweep(self) -> None:
        monotonic = time.monotonic()
        if monotonic - self._swept_at > 1 and self.has_caught_up(self._store.positions):
            self._swept_at = monotonic
            self._store.sweep(before_ms=_now_ms() - TOMBSTONE_MS, count_max=SWEPT_COUNT)


def _size(records: list[Record]) -> int:
    return sum(len(each.value) for each in records if each.value is not None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
