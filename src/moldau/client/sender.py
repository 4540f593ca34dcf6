"""Does what the outbox wants: takes full batches, sends them, asks the cluster, tells who waits."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, cast

from moldau._native.accumulator import ROUND_ROBIN, STICKY, Accumulator, PendingBatch
from moldau.client.clock import MACHINE, loop_clock
from moldau.client.cluster import NO_LEADER, Cluster, Topic
from moldau.client.errors import (
    BufferFullError,
    ClientError,
    ClosedError,
    KafkaError,
)
from moldau.client.lane import Lane
from moldau.client.outbox import Outbox, OutboxRules
from moldau.client.outbox_events import (
    Closed,
    Delivered,
    Enlist,
    Failed,
    Halved,
    Identify,
    IdentityFound,
    LeadersFound,
    LeadersNotFound,
    NotIdentified,
    OutboxEffect,
    OutboxEvent,
    OutboxProducer,
    OutboxTick,
    Refresh,
    Send,
)
from moldau.client.packing import Packing
from moldau.client.producer_settings import ProducerSettings
from moldau.client.transaction_events import BatchFailed, PartitionWanted
from moldau.client.transactor import PRODUCE_VERSION_MAX, Transactor
from moldau.client.undelivered import Flush, warn_undelivered
from moldau.client.waiting import LoopWaiting
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

ROOM_AGAIN = 0.75
"""Who waits for room is woken when so much of the buffer is used: not for every single batch."""


class Sender:
    """A producer's engine; everything here happens in its loop."""

    def __init__(
        self, settings: ProducerSettings, *, is_threaded: bool, cluster: Cluster | None = None
    ) -> None:
        self.settings = settings
        self.cluster = cluster or Cluster(settings)
        self.loop = asyncio.get_running_loop()
        self.clock = loop_clock()
        schedule = self.loop.call_soon_threadsafe if is_threaded else self.loop.call_soon
        custom = None if isinstance(settings.partitioner, str) else settings.partitioner
        self.accumulator = Accumulator(
            batch_size=settings.batch_size,
            linger=settings.linger_ms / 1000,
            buffer_memory=settings.buffer_memory,
            record_bytes_max=settings.max_request_size,
            partitioner=ROUND_ROBIN if settings.partitioner == "round-robin" else STICKY,
            ignores_keys=settings.partitioner_ignore_keys,
            choose=custom,
            clock=self.clock.monotonic,
            wall_clock=None if self.clock is MACHINE else self.clock.wall_ms,
            wake=partial(schedule, self._turn),
            waiting=LoopWaiting(self.loop),
            seed=self.clock.chance.getrandbits(64),
        )
        self._packing = Packing(settings)
        self._outbox = Outbox(
            _rules(settings), split=self._packing.split, chance=self.clock.chance.random
        )
        self._lanes: dict[int, Lane] = {}
        self._events: list[OutboxEvent] = []
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._linger_timer: asyncio.TimerHandle | None = None
        self._tick_timer: asyncio.TimerHandle | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        # Batches that were taken, with their numbers; and who waits for all up to some number.
        self._unfinished: dict[PendingBatch, int] = {}
        self._taken = 0
        self._flushes: list[Flush] = []
        self._room: list[asyncio.Future[None]] = []
        self._topics: set[str] = set()
        self._is_abandoned = False
        self.transactor: Transactor | None = None
        if settings.transactional_id is not None:
            self.accumulator.is_paused = True  # until a transaction begins
            self.transactor = Transactor(
                self.cluster,
                settings,
                tell_outbox=self._tell,
                flush=self.flush,
                pause=partial(setattr, self.accumulator, "is_paused"),
                run=self._run,
            )

    # Records in.

    async def start(self) -> None:
        """Find the cluster."""
        await self.cluster.start()
        self._schedule_refresh()

    async def load_topic(self, name: str, timeout_ms: int) -> None:
        """Learn of a topic, creating it where the broker does that for who asks."""
        try:
            topic = await self.cluster.topic(name, may_create=True, timeout_ms=timeout_ms)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                limit_ms = self.settings.max_block_ms
                raise KafkaError(
                    error.code, f"topic {name}", f"not there after max.block.ms={limit_ms}"
                ) from None
            raise
        self._know(topic)

    async def wait_for_room(self, seconds: float) -> None:
        """Wait until the buffer has some; `BufferFullError` if that takes too long."""
        self._turn()
        room = self.loop.create_future()
        self._room.append(room)
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await room
        except TimeoutError:
            raise BufferFullError(
                f"buffer.memory={self.settings.buffer_memory} is full of records that were not "
                f"delivered within max.block.ms={self.settings.max_block_ms}: is the broker slow, "
                "or gone?"
            ) from None

    async def flush(self) -> None:
        """Send everything now, and wait until it is delivered or given up."""
        self._turn(everything=True)
        if self._unfinished:
            flush = Flush(self._taken, len(self._unfinished), self.loop.create_future())
            self._flushes.append(flush)
            try:
                await flush.done
            finally:
                if flush in self._flushes:
                    self._flushes.remove(flush)

    async def close(self, timeout: float | None) -> None:
        """Deliver what there is, or say what was given up."""
        self.accumulator.is_closed = True
        try:
            async with asyncio.timeout(timeout):
                if self.transactor is not None:
                    await self.transactor.leave()
                await self.flush()
        except TimeoutError:
            pass
        finally:
            self.abandon(ClosedError("the producer was closed before the record was delivered"))
            await self.cluster.close()

    def abandon(self, error: ClientError) -> None:
        """Give up everything, and say what that was."""
        self._is_abandoned = True
        self.accumulator.is_closed = True
        for timer in (self._linger_timer, self._tick_timer, self._age_timer):
            if timer is not None:
                timer.cancel()
        if self.transactor is not None:
            self.transactor.stop(error)
        for lane in self._lanes.values():
            lane.stop()
        for task in self._tasks:
            task.cancel()
        left = [*self._unfinished, *self.accumulator.take(0.0, everything=True)[0]]
        self._unfinished.clear()
        for batch in left:
            self.accumulator.release(batch.size)
            batch.finish(-1, -1, error)
        for flush in self._flushes:
            flush.end()
        self._make_room()
        self.cluster.release()
        warn_undelivered(left)

    # Turns.

    def _turn(self, *, everything: bool = False) -> None:
        """Take what is full or has lingered."""
        now = self.clock.monotonic()
        taken, due = self.accumulator.take(now, everything=everything)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None
        if due is not None:
            self._linger_timer = self.loop.call_later(due - now, self._turn)
        if taken:
            for batch in taken:
                self._taken += 1
                self._unfinished[batch] = self._taken
            self._events.append(Closed(taken))
            self._handle_events()

    def _tell(self, event: OutboxEvent) -> None:
        """Hand an event to the outbox, with all others of this turn of the loop."""
        self._events.append(event)
        if len(self._events) == 1:
            self.loop.call_soon(self._handle_events)

    def _handle_events(self) -> None:
        """Have the outbox handle what has happened, and do what it says."""
        if self._is_abandoned:
            return  # a connection that others use brings answers behind the end, too
        now = self.clock.monotonic()
        events, self._events = self._events, []
        for event in events:
            for effect in self._outbox.handle(event, now):
                self._perform(effect)
        for lane in self._lanes.values():
            lane.release()
        due = self._outbox.next_time
        timer = self._tick_timer
        if due is not None and (timer is None or timer.when() > self.loop.time() + due - now):
            if timer is not None:
                timer.cancel()
            self._tick_timer = self.loop.call_later(max(0.0, due - now), self._tick)

    def _tick(self) -> None:
        self._tick_timer = None
        self._tell(OutboxTick())

    def _perform(self, effect: OutboxEffect) -> None:
        match effect:
            case Send(request):
                self._lane(request.node).send(request)
            case Delivered(batch, base_offset, append_time_ms):
                self._finish(cast("PendingBatch", batch), base_offset, append_time_ms, None)
            case Failed(batch, error):
                if self.transactor is not None:
                    self.transactor.tell(BatchFailed(error))
                self._finish(cast("PendingBatch", batch), -1, -1, error)
            case Enlist(place):
                assert self.transactor is not None
                self.transactor.tell(PartitionWanted(place))
            case Halved(batch, halves):
                number = self._unfinished.pop(cast("PendingBatch", batch))
                for half in halves:
                    self._unfinished[cast("PendingBatch", half)] = number
                for flush in self._flushes:
                    flush.count(number, len(halves) - 1)
            case Refresh(topic):
                self._run(self._refresh(topic))
            case Identify():
                self._run(self._identify())

    def _lane(self, node: int) -> Lane:
        lane = self._lanes.get(node)
        if lane is None:
            lane = self._lanes[node] = Lane(
                node,
                self.cluster,
                self.settings,
                self._tell,
                self._run,
                self._packing.encode,
                self._produce_version_max,
            )
        return lane

    def _produce_version_max(self) -> int:
        return PRODUCE_VERSION_MAX if self.transactor is None else self.transactor.produce_version

    def _finish(
        self, batch: PendingBatch, base_offset: int, append_time_ms: int, error: Exception | None
    ) -> None:
        number = self._unfinished.pop(batch)
        self.accumulator.release(batch.size)
        batch.finish(base_offset, append_time_ms, error)
        # A transaction that does not become one says so itself.
        if error is not None and not batch.delivery_count and self.transactor is None:
            # A warning may be an exception, and this is not the place for one.
            self.loop.call_soon(warn_undelivered, [batch], error)
        for flush in list(self._flushes):
            flush.count(number, -1)
            if flush.done.done():
                self._flushes.remove(flush)
        if self._room:
            used = self.accumulator.used
            if used <= ROOM_AGAIN * self.settings.buffer_memory or not self._unfinished:
                self._make_room()

    def _make_room(self) -> None:
        room, self._room = self._room, []
        for each in room:
            if not each.done():
                each.set_result(None)

    # The cluster.

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.__delitem__)

    def _know(self, topic: Topic) -> None:
        self._topics.add(topic.name)
        leaders = {each.index: each.leader for each in topic.partitions if each.leader != NO_LEADER}
        self.accumulator.set_topic(topic.name, len(topic.partitions), leaders)
        self._tell(LeadersFound(topic.name, leaders))

    async def _refresh(self, name: str) -> None:
        try:
            found = await self.cluster.refresh([name])
        except ClientError as error:
            self._tell(LeadersNotFound(name, error))
        else:
            self._know(found[name])

    def _schedule_refresh(self) -> None:
        seconds = self.settings.metadata_max_age_ms / 1000
        self._age_timer = self.loop.call_later(seconds, self._refresh_all)

    def _refresh_all(self) -> None:
        """Look for new partitions and leaders of everything in use."""
        for name in sorted(self._topics):
            self._run(self._refresh(name))
        self._schedule_refresh()

    async def _identify(self) -> None:
        async def ask() -> InitProducerIdResponse:
            connection = await self.cluster.connect_any()
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            answer = await connection.call(request, InitProducerIdResponse)
            if answer.error_code:
                raise KafkaError(answer.error_code, "InitProducerId")
            return answer

        try:
            answer = await self.cluster.retry(ask, "InitProducerId")
        except ClientError as error:
            is_final = isinstance(error, KafkaError) and not error.retriable
            self._tell(NotIdentified(error, is_final))
        else:
            self._tell(IdentityFound(OutboxProducer(answer.producer_id, answer.producer_epoch)))


def _rules(settings: ProducerSettings) -> OutboxRules:
    return OutboxRules(
        is_idempotent=settings.enable_idempotence,
        in_flight_max=settings.max_in_flight_requests_per_connection,
        request_bytes_max=settings.max_request_size,
        retries=settings.retries,
        delivery_timeout=settings.delivery_timeout_ms / 1000,
        backoff=settings.retry_backoff_ms / 1000,
        backoff_max=settings.retry_backoff_max_ms / 1000,
        is_transactional=settings.transactional_id is not None,
    )
