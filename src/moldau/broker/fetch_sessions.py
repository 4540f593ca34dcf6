"""Fetch sessions (KIP-227): what a client fetches is remembered, so that it names only changes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
EPOCH_MAX: Final = (1 << 31) - 1
TOPIC_IDS_SINCE: Final = 13
EVICTION_SECONDS: Final = 120.0
"""A session that is not used for so long may go; one that lives as long may go for a larger one."""

PARTITIONS_MAX: Final = 500_000
"""In all sessions together, a third of a kilobyte each; what finds no room is fetched without."""

FetchKey: TypeAlias = tuple[str | bytes, int]
"""A topic's name, or its id where the client uses ids, and the partition's number."""


class FetchSessionError(Exception):
    """The whole fetch is refused."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class FetchedPartition:
    """A partition that a client fetches, and what it was told of it last."""

    __slots__ = (
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start",
        "max_bytes",
        "resolved_name",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, partition: FetchPartition) -> None:
        self.topic = topic
        """Empty where the client uses ids."""
        self.topic_id = topic_id
        self.resolved_name = topic
        """The name that the id had when it was first known; it stays when the topic is deleted."""
        self.index = partition.partition
        self.high_watermark = -1
        self.log_start = -1
        self.update(partition)

    def update(self, partition: FetchPartition) -> None:
        """Take over what the client says now."""
        self.fetch_offset = partition.fetch_offset
        self.max_bytes = partition.partition_max_bytes
        self.leader_epoch = partition.current_leader_epoch
        self.last_fetched_epoch = partition.last_fetched_epoch

    @property
    def key(self) -> FetchKey:
        """What it is remembered by."""
        return self.topic or self.topic_id, self.index

    def tell(self, row: PartitionData) -> bool:
        """Say whether a row of an answer is news; it is known from then on."""
        is_news = bool(
            row.records
            or row.error_code
            or row.high_watermark != self.high_watermark
            or row.log_start_offset != self.log_start
            or row.diverging_epoch.epoch >= 0
        )
        # When an error has passed, the partition is news again.
        self.high_watermark = -1 if row.error_code else row.high_watermark
        self.log_start = row.log_start_offset
        return is_news


class FetchSession:
    """What one client fetches, in the order in which it is served."""

    __slots__ = ("created", "epoch", "id", "used", "uses_ids", "wanted")

    def __init__(
        self,
        session_id: int,
        wanted: dict[FetchKey, FetchedPartition],
        *,
        uses_ids: bool,
        now: float,
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_ids = uses_ids
        self.wanted = wanted
        self.created = self.used = now

    def serve_last(self, wanted: FetchedPartition) -> None:
        """Serve a partition behind all others the next time: it had something this time."""
        if self.wanted.pop(wanted.key, None) is not None:
            self.wanted[wanted.key] = wanted


class Selection:
    """What one request fetches, and the session that it belongs to or begins."""

    __slots__ = ("_begins_in", "_epoch", "_session", "_uses_ids", "is_incremental", "wanted")

    def __init__(
        self,
        wanted: Sequence[FetchedPartition],
        session: FetchSession | None = None,
        *,
        begins_in: "FetchSessions | None" = None,
        uses_ids: bool = False,
    ) -> None:
        self.wanted = wanted
        self.is_incremental = session is not None
        self._begins_in = begins_in
        self._session = session
        self._epoch = 0 if session is None else session.epoch
        self._uses_ids = uses_ids

    def finish(
        self, rows: Iterable[tuple[FetchedPartition, PartitionData]], now: float
    ) -> tuple[int, list[tuple[FetchedPartition, PartitionData]]]:
        """Return the session's id and those rows that are to be sent."""
        session = self._session
        if session is None:
            told = list(rows)
            if self._begins_in is None:
                return NO_SESSION, told
            for wanted, row in told:
                wanted.tell(row)
            by_key = {wanted.key: wanted for wanted, _ in told}
            return self._begins_in.create(by_key, uses_ids=self._uses_ids, now=now), told
        if session.epoch != self._epoch:
            # The client has sent another request of this session by another way meanwhile.
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        news = [(wanted, row) for wanted, row in rows if wanted.tell(row)]
        for wanted, row in news:
            if row.records:
                session.serve_last(wanted)
        return session.id, news


class FetchSessions:
    """All sessions, as many as there are slots, the longest unused first."""

    def __init__(
        self,
        slots: int,
        entropy: Callable[[int], bytes],
        *,
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._slots = slots
        self._entropy = entropy
        self._partitions_max = partitions_max
        self.partition_count = 0
        """How many partitions all sessions have together."""
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def select(self, request: FetchRequest, version: int, now: float) -> Selection:
        """Return what a request fetches; `FetchSessionError` refuses it."""
        uses_ids = version >= TOPIC_IDS_SINCE
        epoch = request.session_epoch
        if epoch in (FIRST_EPOCH, LAST_EPOCH):
            self._end(request.session_id)
            wanted: dict[FetchKey, FetchedPartition] = {}
            _take(wanted, request)
            sessions = self if epoch == FIRST_EPOCH else None
            return Selection(list(wanted.values()), begins_in=sessions, uses_ids=uses_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise FetchSessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        before = len(session.wanted)
        _take(session.wanted, request)
        self.partition_count += len(session.wanted) - before
        if not session.wanted:
            self._end(session.id)
            return Selection(())
        if self.partition_count > self._partitions_max:
            self._end(session.id)
            raise FetchSessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.used = now
        self._sessions[session.id] = self._sessions.pop(session.id)  # the last used is last
        return Selection(list(session.wanted.values()), session)

    def create(
        self, wanted: dict[FetchKey, FetchedPartition], *, uses_ids: bool, now: float
    ) -> int:
        """Begin a session if there is room, or another may go for it; return its id or 0."""
        size = len(wanted)
        if size > self._partitions_max:
            return NO_SESSION
        while (
            len(self._sessions) >= self._slots or self.partition_count + size > self._partitions_max
        ):
            if not self._evict(size, now):
                return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = int.from_bytes(self._entropy(4)) & EPOCH_MAX
        self._sessions[session_id] = FetchSession(session_id, wanted, uses_ids=uses_ids, now=now)
        self.partition_count += size
        return session_id

    def _evict(self, size: int, now: float) -> bool:
        """Let a session go for one with `size` partitions; larger ones save more, and stay."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now - oldest.used <= EVICTION_SECONDS:
            settled = [
                session
                for session in self._sessions.values()
                if now - session.created > EVICTION_SECONDS
            ]
            oldest = min(settled, key=lambda session: len(session.wanted), default=None)
            if oldest is None or len(oldest.wanted) > size:
                return False
        self._end(oldest.id)
        return True

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.wanted)


def _take(wanted: dict[FetchKey, FetchedPartition], request: FetchRequest) -> None:
    """Add, change and forget what the request says."""
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.topic or topic.topic_id, partition.partition)
            known = wanted.get(key)
            if known is None:
                wanted[key] = FetchedPartition(topic.topic, topic.topic_id, partition)
            else:
                known.update(partition)
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            wanted.pop((forgotten.topic or forgotten.topic_id, index), None)
