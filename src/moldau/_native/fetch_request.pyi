"""The fetch-request kernel: what clients fetch, their sessions, and requests that are usual."""

from typing import Any, final

from moldau.kernel.disk import Buffer

@final
class FetchedPartition:
    """A partition that a client fetches, and what it was told of it last."""

    topic: str
    """Empty where the client uses ids."""
    topic_id: bytes
    resolved_name: str
    """The name that the id had when it was first known; it stays when the topic is deleted."""
    key: bytes
    """The topic's name, or its id where the client uses ids, and the partition in four bytes."""
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    high_watermark: int
    log_start: int

    def __init__(self, topic: str, topic_id: bytes, partition: Any) -> None: ...
    def update(self, partition: Any) -> None:
        """Take over what the client says now."""

def take_partitions(wanted: dict[bytes, FetchedPartition], request: Any) -> None:
    """Add, change and forget what the request says."""

@final
class FetchSession:
    """What one client fetches, in the order in which it is served."""

    id: int
    epoch: int
    uses_ids: bool
    wanted: dict[bytes, FetchedPartition]
    created: float
    used: float

    def __init__(
        self,
        session_id: int,
        wanted: dict[bytes, FetchedPartition],
        *,
        uses_ids: bool,
        now: float,
    ) -> None: ...
    def serve_last(self, wanted: FetchedPartition) -> None:
        """Serve a partition behind all others the next time: it had something this time."""

    def advance(self, now: float) -> None:
        """Begin the session's next epoch."""

@final
class PlainFetch:
    """A request that has nothing unusual, with all partitions that are fetched."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    is_stable: bool
    session: FetchSession | None
    wanted: list[FetchedPartition]

    def in_turn_from(self, first: bytes | None) -> None:
        """Have a fetch without session begin with the partition of this key."""

def read_plain(
    data: Buffer,
    start: int,
    end: int,
    version: int,
    sessions: dict[int, FetchSession],
    now: float,
) -> PlainFetch | None:
    """Read a request, and advance its session; None, and nothing changes, if it is unusual.

    Unusual is what no consumer sends while it reads: sessions that begin, end or change what they
    fetch, replicas, tagged fields, many partitions, and what is malformed.
    """
