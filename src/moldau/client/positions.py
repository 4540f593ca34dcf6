"""Where a consumer is in each of its partitions: what is asked for, and what was handed out.

    assigned -> wanting a position (start) -> positioned (position <= fetch_offset)
                     ^                              |
                     +--------- seek_to, lose ------+

Everything that was on its way when a position was changed belongs to an older generation, and is
dropped when it comes. Nothing here asks, waits or knows the time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moldau.client.offset_reset import OffsetReset
from moldau.kernel.ids import TopicPartition

NO_EPOCH = -1


@dataclass(slots=True)
class PartitionState:
    """One assigned partition."""

    key: TopicPartition
    start: OffsetReset
    """What is looked up while there is no position."""
    wants_committed: bool = False
    """Whether what the group has committed is to be looked up before that."""
    position: int | None = None
    """The offset of the next record to hand out."""
    fetch_offset: int = 0
    """The next offset to ask for; what is between has been fetched."""
    until: int | None = None
    """The offset before which the user stops; None: never."""
    last_epoch: int = NO_EPOCH
    """Of the leader who wrote the last that was fetched: it tells if the log was cut since."""
    generation: int = 0
    is_paused: bool = False
    topic_id: bytes | None = None
    """Of the topic that the position is in: one of the same name may come after it."""
    not_before: float = 0.0
    """When to ask again after an error."""
    replica: int | None = None
    """The follower that the leader has named as nearer."""
    replica_until: float = 0.0

    @property
    def is_fetched(self) -> bool:
        """Whether everything has come before the offset at which the user stops."""
        return self.until is not None and self.fetch_offset >= self.until


class Positions:
    """All assigned partitions."""

    def __init__(self, reset: OffsetReset) -> None:
        self.reset = reset
        self.are_shared = False
        """Whether a group says which partitions these are: then they are there, or will be."""
        self._states: dict[TopicPartition, PartitionState] = {}
        self._generation = 0

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def find(self, key: TopicPartition) -> PartitionState | None:
        """Return a partition's state, None if it is not assigned."""
        return self._states.get(key)

    def get(self, key: TopicPartition) -> PartitionState:
        """Return a partition's state; `ValueError` if it is not assigned."""
        try:
            return self._states[key]
        except KeyError:
            raise ValueError(f"partition {key} is not assigned to this consumer") from None

    def find_current(self, key: TopicPartition, generation: int) -> PartitionState | None:
        """Return a partition's state if nothing has changed its position since."""
        state = self._states.get(key)
        return state if state is not None and state.generation == generation else None

    @property
    def are_read(self) -> bool:
        """Whether the user has come to where he stops, in all of them."""
        return bool(self._states) and all(
            state.until is not None and state.position is not None and state.position >= state.until
            for state in self
        )

    # What the user says.

    def assign(self, keys: Iterable[TopicPartition], *, from_committed: bool = False) -> None:
        """Have exactly these partitions; who was here keeps its position.

        Others begin where the group has come to, or where `auto.offset.reset` says.
        """
        self._states = {
            key: self._states.get(key)
            or PartitionState(key, self.reset, from_committed, generation=self._next())
            for key in keys
        }

    def seek(self, key: TopicPartition, offset: int, until: int | None = None) -> None:
        """Go on at an offset, and stop before another."""
        if offset < 0:
            raise ValueError(f"there is no offset {offset} in {key}")
        state = self.get(key)
        self._move(state, offset)
        state.until = until
        state.topic_id = None

    def seek_to(self, key: TopicPartition, start: OffsetReset) -> None:
        """Go on at a place that is yet to be looked up."""
        state = self.get(key)
        state.start = start
        state.until = None
        state.wants_committed = False
        state.position = None
        state.last_epoch = NO_EPOCH
        state.topic_id = None
        state.generation = self._next()

    def pause(self, key: TopicPartition) -> None:
        """Hand out nothing of a partition until it is resumed; what was fetched is dropped."""
        state = self.get(key)
        if not state.is_paused:
            state.is_paused = True
            self.rewind(state)

    def resume(self, key: TopicPartition) -> None:
        """Go on with a paused partition."""
        self.get(key).is_paused = False

    # What happens.

    def resolve(self, key: TopicPartition, generation: int, offset: int) -> None:
        """A place was looked up."""
        state = self.find_current(key, generation)
        if state is not None and state.position is None:
            self._move(state, offset)
            state.start = self.reset

    def found_committed(
        self, key: TopicPartition, generation: int, offset: int | None, leader_epoch: int
    ) -> None:
        """What the group has committed was looked up, None if that is nothing."""
        state = self.find_current(key, generation)
        if state is None or state.position is not None:
            return
        state.wants_committed = False
        if offset is not None:
            self._move(state, offset)
            state.last_epoch = leader_epoch

    def fetched(self, state: PartitionState, asked: int, following: int, epoch: int) -> bool:
        """Batches have come for an offset that was asked for; False if they are not wanted."""
        if state.position is None or state.fetch_offset != asked or following <= asked:
            return False
        state.fetch_offset = following
        state.last_epoch = epoch
        return True

    def handed(self, state: PartitionState, following: int) -> None:
        """Records before this offset were handed out, or there are none to hand out."""
        assert state.position is not None, "only what has a position is handed out"
        assert state.position <= following <= state.fetch_offset, "in order, and fetched"
        state.position = following

    def rewind(self, state: PartitionState, *, to: int | None = None) -> None:
        """Fetch again what was fetched and not handed out, or from an earlier offset."""
        if state.position is not None:
            self._move(state, state.position if to is None else to)
        else:
            state.generation = self._next()

    def lose(self, state: PartitionState) -> None:
        """The position is nowhere in the log: look `auto.offset.reset` up."""
        self.seek_to(state.key, self.reset)

    def _move(self, state: PartitionState, offset: int) -> None:
        state.position = state.fetch_offset = offset
        state.wants_committed = False
        state.last_epoch = NO_EPOCH
        state.generation = self._next()

    def _next(self) -> int:
        self._generation += 1
        return self._generation
