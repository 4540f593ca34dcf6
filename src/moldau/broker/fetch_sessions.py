"""Fetch sessions (KIP-227): what a client fetches is remembered, so that it names only changes."""

from collections.abc import Callable, Iterable
from typing import Final

from moldau._native.fetch_request import FetchedPartition, FetchSession, take_partitions
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import FetchRequest, PartitionData

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
EPOCH_MAX: Final = (1 << 31) - 1
TOPIC_IDS_SINCE: Final = 13
EVICTION_SECONDS: Final = 120.0
"""A session that is not used for so long may go; one that lives as long may go for a larger one."""

PARTITIONS_MAX: Final = 500_000
"""In all sessions together, a third of a kilobyte each; what finds no room is fetched without."""


class FetchSessionError(Exception):
    """The whole fetch is refused."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


def tell(wanted: FetchedPartition, row: PartitionData) -> bool:
    """Say whether a row of an answer is news; it is known from then on."""
    is_news = bool(
        row.records
        or row.error_code
        or row.high_watermark != wanted.high_watermark
        or row.log_start_offset != wanted.log_start
        or row.diverging_epoch.epoch >= 0
    )
    # When an error has passed, the partition is news again.
    wanted.high_watermark = -1 if row.error_code else row.high_watermark
    wanted.log_start = row.log_start_offset
    return is_news


class Selection:
    """What one request fetches, and the session that it belongs to or begins."""

    __slots__ = ("_begins_in", "_epoch", "_uses_ids", "is_incremental", "session", "wanted")

    def __init__(
        self,
        wanted: list[FetchedPartition],
        session: FetchSession | None = None,
        *,
        begins_in: "FetchSessions | None" = None,
        uses_ids: bool = False,
    ) -> None:
        self.wanted = wanted
        self.is_incremental = session is not None
        self.session = session
        self._begins_in = begins_in
        self._epoch = 0 if session is None else session.epoch
        self._uses_ids = uses_ids

    @property
    def is_plain(self) -> bool:
        """Whether the fetch kernel may answer: it begins no session, and refuses nothing."""
        session = self.session
        return self._begins_in is None and (session is None or session.epoch == self._epoch)

    def finish(
        self, rows: Iterable[tuple[FetchedPartition, PartitionData]], now: float
    ) -> tuple[int, list[tuple[FetchedPartition, PartitionData]]]:
        """Return the session's id and those rows that are to be sent."""
        session = self.session
        if session is None:
            told = list(rows)
            if self._begins_in is None:
                return NO_SESSION, told
            for wanted, row in told:
                tell(wanted, row)
            by_key = {wanted.key: wanted for wanted, _ in told}
            return self._begins_in.create(by_key, uses_ids=self._uses_ids, now=now), told
        if session.epoch != self._epoch:
            # The client has sent another request of this session by another way meanwhile.
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        news = [(wanted, row) for wanted, row in rows if tell(wanted, row)]
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
        self.by_id: dict[int, FetchSession] = {}
        """The last used is last."""

    def __len__(self) -> int:
        return len(self.by_id)

    def select(self, request: FetchRequest, version: int, now: float) -> Selection:
        """Return what a request fetches; `FetchSessionError` refuses it."""
        uses_ids = version >= TOPIC_IDS_SINCE
        epoch = request.session_epoch
        if epoch in (FIRST_EPOCH, LAST_EPOCH):
            self._end(request.session_id)
            wanted: dict[bytes, FetchedPartition] = {}
            take_partitions(wanted, request)
            sessions = self if epoch == FIRST_EPOCH else None
            return Selection(list(wanted.values()), begins_in=sessions, uses_ids=uses_ids)
        session = self.by_id.get(request.session_id)
        if session is None:
            raise FetchSessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise FetchSessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        before = len(session.wanted)
        take_partitions(session.wanted, request)
        self.partition_count += len(session.wanted) - before
        if not session.wanted:
            self._end(session.id)
            return Selection([])
        if self.partition_count > self._partitions_max:
            self._end(session.id)
            raise FetchSessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.advance(now)
        self.by_id[session.id] = self.by_id.pop(session.id)  # the last used is last
        return Selection(list(session.wanted.values()), session)

    def create(self, wanted: dict[bytes, FetchedPartition], *, uses_ids: bool, now: float) -> int:
        """Begin a session if there is room, or another may go for it; return its id or 0."""
        size = len(wanted)
        if size > self._partitions_max:
            return NO_SESSION
        while len(self.by_id) >= self._slots or self.partition_count + size > self._partitions_max:
            if not self._evict(size, now):
                return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self.by_id:
            session_id = int.from_bytes(self._entropy(4)) & EPOCH_MAX
        self.by_id[session_id] = FetchSession(session_id, wanted, uses_ids=uses_ids, now=now)
        self.partition_count += size
        return session_id

    def _evict(self, size: int, now: float) -> bool:
        """Let a session go for one with `size` partitions; larger ones save more, and stay."""
        oldest = next(iter(self.by_id.values()), None)
        if oldest is None:
            return False
        if now - oldest.used <= EVICTION_SECONDS:
            settled = [
                session
                for session in self.by_id.values()
                if now - session.created > EVICTION_SECONDS
            ]
            oldest = min(settled, key=lambda session: len(session.wanted), default=None)
            if oldest is None or len(oldest.wanted) > size:
                return False
        self._end(oldest.id)
        return True

    def _end(self, session_id: int) -> None:
        session = self.by_id.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.wanted)
