"""Finds where to begin in partitions that have no position, and what became of their topics."""

from collections.abc import Awaitable, Callable, Iterable

from moldau.client.clock import loop_clock
from moldau.client.cluster import Cluster
from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.descriptions import ListedOffset
from moldau.client.errors import ClientError, KafkaError, NoOffsetError
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.client.leaders import AbsentPartitionError, LeaderAnswers
from moldau.client.offset_lookup import EARLIEST, ISOLATION_LEVELS, LATEST, list_offsets
from moldau.client.offset_reset import OffsetReset
from moldau.client.positions import PartitionState, Positions
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

FindCommitted = Callable[
    [Iterable[TopicPartition]], Awaitable[dict[TopicPartition, OffsetAndMetadata | None]]
]
"""Looks up what a group has committed."""


class PositionFinder:
    """Asks for metadata and offsets, once whenever it is run."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        positions: Positions,
        committed: FindCommitted | None = None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._positions = positions
        self._committed = committed
        self._clock = loop_clock()

    def has_work(self) -> bool:
        """Whether there is something to find out now."""
        monotonic = self._clock.monotonic()
        for state in self._positions:
            if self._waits(state, monotonic):
                continue
            topic = self._cluster.find_topic(state.key.topic)
            if topic is None or state.position is None:
                return True
            if state.topic_id not in (None, topic.topic_id):
                return True
        return False

    def wait_seconds(self) -> float | None:
        """Return how long to wait before there is something to find out again, None if for ever."""
        monotonic = self._clock.monotonic()
        waits = [
            state.not_before - monotonic
            for state in self._positions
            if self._waits(state, monotonic)
        ]
        return min(waits, default=None)

    def _waits(self, state: PartitionState, monotonic: float) -> bool:
        is_concerned = state.position is None or self._positions.are_shared
        return is_concerned and state.not_before > monotonic

    async def run(self) -> None:
        """Find out what can be; raise what the user must know. What may pass is tried later."""
        missing = {
            state.key.topic
            for state in self._positions
            if self._cluster.find_topic(state.key.topic) is None
        }
        if missing:
            await self._refresh(missing)
        for state in list(self._positions):
            self._check_topic(state)
        await self._look_up_committed()
        await self._look_up()

    async def _refresh(self, topics: set[str]) -> None:
        try:
            await self._cluster.refresh(sorted(topics))
        except KafkaError as error:
            is_gone = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not (is_gone and self._positions.are_shared):
                raise
            # The group will hear of it, and give up its partitions.
            for state in self._positions:
                if self._cluster.find_topic(state.key.topic) is None:
                    self._try_later(state.key)

    def _check_topic(self, state: PartitionState) -> None:
        topic = self._cluster.find_topic(state.key.topic)
        if topic is None:
            return
        if state.key.partition >= len(topic.partitions):
            if self._positions.are_shared:
                # The group's leader or coordinator knows more than the broker that was asked.
                self._try_later(state.key)
                return
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            count = f"the topic has {len(topic.partitions)}"
            raise AbsentPartitionError(code, f"partition {state.key}", count)
        if state.topic_id not in (None, topic.topic_id):
            # Deleted and created anew: all that it has is new, wherever one was in the old one.
            if self._positions.reset.is_none:
                raise NoOffsetError(
                    f"topic {topic.name} was created anew, and auto.offset.reset is none: seek"
                )
            self._positions.seek_to(state.key, OffsetReset(EARLIEST))

    async def _look_up_committed(self) -> None:
        wanted = {state.key: state.generation for state in self._positions if state.wants_committed}
        if not wanted or self._committed is None:
            return
        for key, found in (await self._committed(wanted)).items():
            offset, epoch = (None, -1) if found is None else (found.offset, found.leader_epoch)
            self._positions.found_committed(key, wanted[key], offset, epoch)

    async def _look_up(self) -> None:
        monotonic, wall_ms = self._clock.monotonic(), self._clock.wall_ms()
        generations: dict[TopicPartition, int] = {}
        timestamps: dict[TopicPartition, int] = {}
        error: ClientError | None = None
        for state in self._positions:
            if state.position is not None or state.not_before > monotonic:
                continue
            if state.wants_committed:
                continue  # it has come since the last look
            try:
                what = f"partition {state.key}"
                timestamps[state.key] = state.start.timestamp_at(wall_ms, what)
                generations[state.key] = state.generation
            except NoOffsetError as without:
                error = error or without
        for key, answer in (await self._ask(timestamps)).items():
            if isinstance(answer, ListedOffset):
                self._positions.resolve(key, generations[key], answer.offset)
            elif answer.retriable:
                self._try_later(key)
            else:
                error = error or answer
        if error is not None:
            raise error

    async def _ask(self, timestamps: dict[TopicPartition, int]) -> LeaderAnswers[ListedOffset]:
        level = ISOLATION_LEVELS[self._settings.isolation_level]
        answers: LeaderAnswers[ListedOffset] = {}
        # Who finds no record as late as a time begins at the end.
        for each in (timestamps, dict.fromkeys(timestamps, LATEST)):
            wanted = {key: each[key] for key in timestamps if _is_open(answers.get(key))}
            if wanted:
                answers |= await list_offsets(
                    self._cluster, wanted, isolation_level=level, timeout_ms=0
                )
        return answers

    def _try_later(self, key: TopicPartition) -> None:
        self._cluster.forget(key.topic)
        state = self._positions.find(key)
        if state is not None:
            state.not_before = self._clock.monotonic() + self._settings.retry_backoff_ms / 1000


def _is_open(answer: ListedOffset | KafkaError | None) -> bool:
    return answer is None or (isinstance(answer, ListedOffset) and answer.offset < 0)
