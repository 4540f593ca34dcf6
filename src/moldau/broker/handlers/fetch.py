"""Fetch v4-v18. v7 sessions; v9 leader epochs; v12 flexible, diverging epochs; v13 topic ids.

v16 tells of a new leader. Below v4 records would have to be turned into older formats.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from moldau._native.fetch import PlainReads, SentBytes, answer_plain, find_plain
from moldau._native.fetch_request import FetchedPartition, FetchSession, PlainFetch, read_plain
from moldau._native.files import FileRegion
from moldau._native.frames import Frame
from moldau.broker.broker import Broker
from moldau.broker.calls import Call, Sent
from moldau.broker.fetch_plan import (
    UNKNOWN_TOPIC,
    ColdError,
    FetchPlan,
    FoundRead,
    look,
    plan_fetch,
)
from moldau.broker.fetch_sessions import FetchSessionError, Selection
from moldau.broker.leaders import current_leader
from moldau.broker.ports import SendablePieces
from moldau.kernel.disk import Buffer
from moldau.log.errors import UNREADABLE
from moldau.log.extents import Isolation
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica

LEADER_SINCE: Final = 16
READ_COMMITTED: Final = 1
BYTES_OUT_MAX: Final = 256 << 20
"""How much may be read and not sent yet, for all clients together."""

PLAIN_PARTITIONS_MAX: Final = 64
"""Of more partitions, a fetch that waits looks only at those that have changed."""
NOTHING: Final = SendablePieces((), None, 0)

# Shared by all rows that have nothing to say there.
_NO_LEADER: Final = LeaderIdAndEpoch()
_NO_SNAPSHOT: Final = SnapshotId()
_NO_EPOCH: Final = EpochEndOffset()
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def try_fetch(broker: Broker, call: Call, data: Buffer, frame: Frame) -> bool:
    """Answer a fetch that has nothing unusual; False, and nothing has happened, for any other."""
    received = call.received.monotonic
    sessions = broker.fetch_sessions.by_id
    fetch = read_plain(data, frame.body, frame.end, frame.api_version, sessions, received)
    if fetch is None:
        return False
    fetch.in_turn_from(call.peer.fetch_from)
    bytes_max = min(fetch.max_bytes, broker.settings.fetch_max_bytes)
    is_stable = fetch.is_stable
    plain = _find(broker, fetch.wanted, _bytes_now(broker, call, bytes_max), is_stable=is_stable)
    if plain is not None and (
        plain.size >= fetch.min_bytes
        or plain.size >= bytes_max
        or plain.is_urgent
        or fetch.max_wait_ms <= 0
    ):
        if _answer(broker, call, plain, fetch.session, is_stable=is_stable):
            return True
        plain = None
    waiting = _Fetch(broker, call, fetch, Selection(fetch.wanted, fetch.session))
    waiting.start(plain)
    return True


def handle_fetch(broker: Broker, call: Call, request: FetchRequest) -> FetchResponse | None:
    """Read records; wait for more if there are too few."""
    now = call.received.monotonic
    try:
        selection = broker.fetch_sessions.select(request, call.version, now)
    except FetchSessionError as error:
        return FetchResponse(error_code=error.code)
    _Fetch(broker, call, request, selection).start()
    return None


class _Fetch:
    """A fetch on its way."""

    __slots__ = (
        "_available",
        "_broker",
        "_bytes_max",
        "_bytes_min",
        "_call",
        "_is_stable",
        "_isolation",
        "_replica_id",
        "_selection",
        "_until",
        "_wanted",
        "_watched",
        "_woken",
        "is_done",
    )

    def __init__(
        self,
        broker: Broker,
        call: Call,
        request: FetchRequest | PlainFetch,
        selection: Selection,
    ) -> None:
        self._broker = broker
        self._call = call
        self._selection = selection
        self._wanted = _in_turn(selection, call)
        if isinstance(request, PlainFetch):
            self._is_stable, self._replica_id = request.is_stable, -1
        else:
            self._is_stable = request.isolation_level == READ_COMMITTED
            self._replica_id = max(request.replica_id, request.replica_state.replica_id)
        self._isolation = Isolation.STABLE if self._is_stable else Isolation.HIGH_WATERMARK
        self._bytes_max = min(request.max_bytes, broker.settings.fetch_max_bytes)
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        self._until = call.received.monotonic + request.max_wait_ms / 1000
        self._watched: dict[Replica, FetchedPartition] = {}
        self._available: dict[Replica, int] = {}
        self._woken: dict[Replica, None] = {}
        self.is_done = False

    def start(self, plain: PlainReads | None = None) -> None:
        """Answer, or wait; `plain` is what the kernel has found already."""
        if self._replica_id >= 0:
            self._refuse_follower()
            return
        plain = plain or self._find_plain()
        if plain is not None:
            if not self._is_enough(plain):
                self._park_plain(plain)
                return
            if self._answer_plain(plain):
                return
        try:
            plan = self._plan()
        except ColdError as error:
            self._call.on_close = self._give_up
            self._warm(error, self._start_again)
            return
        is_late = self._until <= self._call.received.monotonic
        if is_late or plan.is_urgent or plan.size >= self._bytes_min:
            self.is_done = True
            self._load(plan)
        else:
            self._park(plan)

    def _start_again(self) -> None:
        if not self.is_done:
            self.start()

    def _give_up(self) -> None:
        """Do not begin to wait: the client is gone."""
        self.is_done = True

    def _warm(self, error: ColdError, then: Callable[[], None]) -> None:
        self._broker.logs.warm(error.partition, error.cold, partial(self._call.attempt, then))

    def _plan(self) -> FetchPlan:
        return plan_fetch(self._broker, self._wanted, self._isolation, self._bytes_now())

    def _bytes_now(self) -> int:
        return _bytes_now(self._broker, self._call, self._bytes_max)

    # The common case, in the kernel: all partitions are led here and nothing is unusual.

    def _find_plain(self) -> PlainReads | None:
        if len(self._wanted) > PLAIN_PARTITIONS_MAX:
            return None
        return _find(self._broker, self._wanted, self._bytes_now(), is_stable=self._is_stable)

    def _is_enough(self, plain: PlainReads) -> bool:
        is_late = self._until <= self._call.received.monotonic
        return plain.size >= self._bytes_min or plain.is_urgent or is_late

    def _park_plain(self, plain: PlainReads) -> None:
        for read in plain.reads:
            self._watched[read.replica] = read.wanted
            self._available[read.replica] = read.length
            read.replica.watch(self)
        self._broker.parking.park(self, self._until)
        self._call.on_close = self._leave

    def _answer_plain(self, plain: PlainReads) -> bool:
        """Answer; False if something has to be waited for, or is not as it should be."""
        selection = self._selection
        if not selection.is_plain:
            return False
        if not _answer(
            self._broker, self._call, plain, selection.session, is_stable=self._is_stable
        ):
            return False
        self.is_done = True
        return True

    # Waiting.

    def _park(self, plan: FetchPlan) -> None:
        for found in plan.found:
            replica = found.replica
            if replica is not None:
                self._watched[replica] = found.wanted
                self._available[replica] = found.size
                replica.watch(self)
        self._broker.parking.park(self, self._until)
        self._call.on_close = self._leave

    @property
    def has_enough(self) -> bool:
        """Whether there is now what it waits for: then it was woken, or it would wait in vain."""
        plain = self._find_plain()
        return plain is not None and self._is_enough(plain)

    def wake(self, replica: Replica) -> None:
        """Take note that a partition has changed."""
        self._woken[replica] = None
        self._broker.parking.wake(self)

    def look_again(self) -> None:
        """Answer if there is enough now; only what has changed is looked at."""
        self._call.attempt(self._look_again)

    def _look_again(self) -> None:
        plain = self._find_plain()
        if plain is not None:
            self._woken = {}
            if self._is_enough(plain):
                self._unwatch()
                if not self._answer_plain(plain):
                    self._finish()
            return
        woken, self._woken = self._woken, {}
        for replica in woken:
            wanted = self._watched[replica]
            try:
                found = look(self._broker, wanted, self._isolation, self._bytes_max, whole=True)
            except ColdError:
                break
            if found.is_urgent or found.error is not None:
                break  # when it began to wait there was none
            self._available[replica] = found.size
        else:
            if sum(self._available.values()) < self._bytes_min:
                return
        self._unwatch()
        self._finish()

    def expire(self) -> None:
        """Answer with what there is."""
        self._unwatch()
        self._call.attempt(self._finish)

    def _leave(self) -> None:
        """Wait no more: the client is gone."""
        if not self.is_done:
            self._unwatch()

    def _unwatch(self) -> None:
        self.is_done = True
        self._call.on_close = None
        for replica in self._watched:
            replica.unwatch(self)

    def _finish(self) -> None:
        plain = self._find_plain()
        if plain is not None and self._answer_plain(plain):
            return
        try:
            plan = self._plan()
        except ColdError as error:
            self._warm(error, self._finish)
            return
        self._load(plan)

    # Answering.

    def _load(self, plan: FetchPlan) -> None:
        if not self._selection.is_incremental:
            left_out = plan.left_out
            self._call.peer.fetch_from = None if left_out is None else left_out.key
        if not plan.pieces:
            self._answer(plan, NOTHING)
            return
        self._broker.fetch_bytes_out += plan.size
        self._broker.logs.ready(plan.pieces, partial(self._ready, plan))

    def _ready(self, plan: FetchPlan, sendable: SendablePieces) -> None:
        # What leaves from its file takes no memory.
        self._broker.fetch_bytes_out -= plan.size - sendable.memory_bytes
        self._call.attempt(partial(self._answer, plan, sendable))

    def _answer(self, plan: FetchPlan, sendable: SendablePieces) -> None:
        contents = iter(sendable.contents)
        response = FetchResponse()
        for found in plan.found:
            if found.replica is not None:
                found.replica.traffic.fetch_requests += 1
        is_incremental = self._selection.is_incremental
        rows = [
            (found.wanted, self._row(found, next(contents) if found.size else b"", response))
            for found in plan.found
            if not (is_incremental and found.is_told)
        ]
        try:
            response.session_id, rows = self._selection.finish(rows, self._call.received.monotonic)
            response.responses = _by_topic(rows)
        except FetchSessionError as error:
            response = FetchResponse(error_code=error.code)
        self._call.answer(response, self._sent(sendable) if plan.pieces else None)

    def _sent(self, sendable: SendablePieces) -> Sent:
        def sent() -> None:
            self._broker.fetch_bytes_out -= sendable.memory_bytes
            if sendable.release is not None:
                sendable.release()

        return sent

    def _row(
        self, found: FoundRead, records: Buffer | FileRegion | None, response: FetchResponse
    ) -> PartitionData:
        """Return a partition's part of the answer."""
        read, error = found.read, found.error
        if records is None:
            error = ReplicaError(ErrorCode.KAFKA_STORAGE_ERROR, "the records cannot be read")
        if error is not None or read is None:
            assert error is not None, "there is a read or an error"
            # As in Kafka, what a client asks for in vain is no failure of the broker.
            if found.replica is not None and error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                found.replica.traffic.fetch_failed += 1
            return self._error_row(found.wanted, error, response)
        if records:
            assert found.replica is not None, "it was read from"
            found.replica.traffic.bytes_out += len(records)
        diverging = found.diverging
        return PartitionData(
            partition_index=found.wanted.index,
            high_watermark=read.high_watermark,
            last_stable_offset=read.stable_offset,
            log_start_offset=read.log_start,
            diverging_epoch=(
                _NO_EPOCH
                if diverging is None
                else EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset)
            ),
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=(
                [
                    AbortedTransaction(
                        producer_id=aborted.producer_id, first_offset=aborted.first_offset
                    )
                    for aborted in read.aborted
                ]
                if self._isolation is Isolation.STABLE
                else None
            ),
            # The codec writes the size of a region, and leaves its bytes to the socket.
            records=cast("Buffer", records),
        )

    def _error_row(
        self, wanted: FetchedPartition, error: ReplicaError, response: FetchResponse
    ) -> PartitionData:
        row = PartitionData(
            partition_index=wanted.index,
            error_code=error.code,
            high_watermark=-1,
            diverging_epoch=_NO_EPOCH,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=[] if error.code in UNKNOWN_TOPIC else None,
            records=b"",
        )
        if error.code in _LEADER_ERRORS and self._call.version >= LEADER_SINCE:
            self._name_leader(row, wanted, response)
        return row

    def _name_leader(
        self, row: PartitionData, wanted: FetchedPartition, response: FetchResponse
    ) -> None:
        """Tell who leads now, so that the client need not ask (KIP-951)."""
        known = self._broker.image.topics.find_by_id(wanted.topic_id)
        if known is None:
            return
        leader = current_leader(self._broker, self._call.peer, known.name, wanted.index)
        row.current_leader = LeaderIdAndEpoch(
            leader_id=leader.node_id, leader_epoch=leader.leader_epoch
        )
        endpoints = response.node_endpoints
        is_client = self._replica_id < 0
        if (
            is_client
            and leader.endpoint
            and all(each.node_id != leader.node_id for each in endpoints)
        ):
            host, port = leader.endpoint
            endpoint = NodeEndpoint(node_id=leader.node_id, host=host, port=port)
            response.node_endpoints = [*endpoints, endpoint]

    def _refuse_follower(self) -> None:
        """Refuse a replica that no partition here is assigned to."""
        error = ReplicaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self._replica_id} is not a replica"
        )
        found = [FoundRead(wanted, None, None, error) for wanted in self._wanted]
        self._answer(FetchPlan(found, (), 0, is_urgent=True, left_out=None), NOTHING)


def _bytes_now(broker: Broker, call: Call, bytes_max: int) -> int:
    """Return how much may be read, with what is read for others and not sent yet."""
    room = call.room
    left = BYTES_OUT_MAX - broker.fetch_bytes_out
    room = left if left < room else room
    bytes_max = room if room < bytes_max else bytes_max
    return bytes_max if bytes_max > 0 else 0


def _find(
    broker: Broker, wanted: list[FetchedPartition], bytes_max: int, *, is_stable: bool
) -> PlainReads | None:
    """Find what a fetch gets if nothing of it is unusual."""
    try:
        return find_plain(broker.replicas.leaders, wanted, is_stable, bytes_max)
    except UNREADABLE:
        return None  # the long way finds it again, and has a thread read or tells the client


def _answer(
    broker: Broker, call: Call, plain: PlainReads, session: FetchSession | None, *, is_stable: bool
) -> bool:
    """Answer with what was found; False if it is not in memory, or cannot be read."""
    try:
        region_bytes_min = broker.settings.moldau_fetch_sendfile_min_bytes
        response = answer_plain(
            plain, session, call.version, call.correlation_id, is_stable, region_bytes_min
        )
    except (OSError, *UNREADABLE):
        return False
    if response is None:
        return False
    if session is None:
        left_out = plain.left_out
        call.peer.fetch_from = None if left_out is None else left_out.key
    call.answer(response, SentBytes(broker, plain.memory_bytes) if plain.memory_bytes else None)
    return True


def _in_turn(selection: Selection, call: Call) -> list[FetchedPartition]:
    """Return what is fetched, first what the client's last fetch had no room for.

    A session has an order of its own: what had something goes behind the others.
    """
    wanted = selection.wanted
    first = call.peer.fetch_from
    if first is not None and not selection.is_incremental:
        for number, each in enumerate(wanted):
            if each.key == first:
                return [*wanted[number:], *wanted[:number]]
    return wanted


def _by_topic(
    rows: Sequence[tuple[FetchedPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    for wanted, row in rows:
        topics.setdefault((wanted.topic, wanted.topic_id), []).append(row)
    return [
        FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in topics.items()
    ]
