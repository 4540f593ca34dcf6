"""What was fetched and waits to be handed out, in the order in which it came."""

from collections import Counter, deque
from dataclasses import dataclass

from moldau._native.columns import Columns
from moldau._native.fetched import Record
from moldau.client.chunk import Chunk
from moldau.client.connection import Connection
from moldau.client.errors import KafkaError
from moldau.client.positions import PartitionState, Positions
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that stands in the way behind what was fetched before."""

    key: TopicPartition
    generation: int
    offset: int
    code: ErrorCode
    message: str | None = None
    cut_to: int | None = None
    """Where the log that was read from ends in the leader's history."""


@dataclass(slots=True)
class FetchedAnswer:
    """What came at once from one broker."""

    node_id: int
    connection: Connection
    parts_left: int = 0


class FetchQueue:
    """Hands out what came, and knows how many answers of each broker are not through."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._waiting: deque[tuple[Chunk | Trouble, FetchedAnswer]] = deque()
        self._undrained: Counter[int] = Counter()
        self.drained_count = 0
        """How many answers are through: a broker may be asked for another."""

    def answers_from(self, node_id: int) -> int:
        """Return how many answers of a broker wait to be handed out."""
        return self._undrained[node_id]

    def add(self, answer: FetchedAnswer, parts: list[Chunk | Trouble]) -> None:
        """Put an answer behind the others."""
        if parts:
            answer.parts_left = len(parts)
            self._undrained[answer.node_id] += 1
            self._waiting.extend((part, answer) for part in parts)

    def take_records(self, count: int) -> list[Record]:
        """Return records that have come, `count` at most; raise what stands in their way."""
        records: list[Record] = []
        while len(records) < count:
            found = self._first(has_before=bool(records))
            if found is None:
                break
            state, chunk = found
            assert state.position is not None, "fetched at a position"
            before = len(records)
            try:
                more = chunk.read(records, count - before, state.position)
            except ProtocolError as error:
                if len(records) > before:
                    self._positions.handed(state, records[-1].offset + 1)
                self._damaged(state, error, has_before=bool(records))
                break
            if len(records) > before:
                self._positions.handed(state, records[-1].offset + 1)
            if not more:
                self._positions.handed(state, chunk.following)
                self._drop_first()
        return records

    def take_columns(self) -> list[Columns]:
        """Return all that has come as columns; raise what stands in its way."""
        taken: list[Columns] = []
        while (found := self._first(has_before=bool(taken))) is not None:
            state, chunk = found
            assert state.position is not None, "fetched at a position"
            try:
                taken += chunk.columns(state.position)
            except ProtocolError as error:
                self._damaged(state, error, has_before=bool(taken))
                break
            self._positions.handed(state, chunk.following)
            self._drop_first()
        return taken

    def _first(self, *, has_before: bool) -> tuple[PartitionState, Chunk] | None:
        """Return the first that is to be handed out; what nobody wants any more is dropped."""
        while self._waiting:
            part, _ = self._waiting[0]
            state = self._positions.find_current(part.key, part.generation)
            if state is None:
                self._drop_first()
            elif isinstance(part, Chunk):
                return state, part
            elif has_before:
                return None
            else:
                self._drop_first()
                self._meet(state, part)
        return None

    def _drop_first(self) -> None:
        part, answer = self._waiting.popleft()
        answer.parts_left -= 1
        if isinstance(part, Chunk):
            owner = part.close()
            del part
            answer.connection.memory.give(owner)
        if not answer.parts_left:
            self._undrained[answer.node_id] -= 1
            self.drained_count += 1

    def _meet(self, state: PartitionState, trouble: Trouble) -> None:
        """Everything before it was handed out: go on elsewhere, or tell the user."""
        what = f"partition {state.key} at offset {trouble.offset}"
        if trouble.code is ErrorCode.OFFSET_OUT_OF_RANGE and not self._positions.reset.is_none:
            if trouble.cut_to is None:
                self._positions.lose(state)
            else:
                self._positions.rewind(state, to=min(trouble.cut_to, trouble.offset))
            return
        # Whoever asks again is told again, unless it was sought elsewhere.
        self._positions.rewind(state)
        raise KafkaError(trouble.code, what, trouble.message)

    def _damaged(self, state: PartitionState, error: Exception, *, has_before: bool) -> None:
        position = state.position
        self._positions.rewind(state)
        self._drop_first()
        if not has_before:
            what = f"partition {state.key} at offset {position}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, what, str(error)) from error
