"""Fetch v4-v18. v7 sessions; v9 leader epochs; v12 flexible, diverging epochs; v13 topic ids.

v16 tells of a new leader. Below v4 records would have to be turned into older formats.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from moldau._native.files import FileRegion
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
from moldau.broker.fetch_sessions import FetchedPartition, FetchSessionError, Selection
from moldau.broker.leaders import current_leader
from moldau.broker.ports import SendablePieces
from moldau.kernel.disk import Buffer
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

NOTHING: Final = SendablePieces((), None, 0)

# Shared by all rows that have nothing to say there.
_NO_LEADER: Final = LeaderIdAndEpoch()
_NO_SNAPSHOT: Final = SnapshotId()
_NO_EPOCH: Final = EpochEndOffset()
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


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
        self, broker: Broker, call: Call, request: FetchRequest, selection: Selection
    ) -> None:
        self._broker = broker
        self._call = call
        self._selection = selection
        self._wanted = _in_turn(selection, call)
        self._isolation = (
            Isolation.STABLE
            if request.isolation_level == READ_COMMITTED
            else Isolation.HIGH_WATERMARK
        )
        self._replica_id = max(request.replica_id, request.replica_state.replica_id)
        self._bytes_max = min(request.max_bytes, broker.settings.fetch_max_bytes)
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        self._until = call.received.monotonic + request.max_wait_ms / 1000
        self._watched: dict[Replica, FetchedPartition] = {}
        self._available: dict[Replica, int] = {}
        self._woken: dict[Replica, None] = {}
        self.is_done = False

    def start(self) -> None:
        """Answer, or wait."""
        if self._replica_id >= 0:
            self._refuse_follower()
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
        room = min(self._call.room, BYTES_OUT_MAX - self._broker.fetch_bytes_out)
        bytes_max = max(0, min(self._bytes_max, room))
        return plan_fetch(self._broker, self._wanted, self._isolation, bytes_max)

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

    def wake(self, replica: Replica) -> None:
        """Take note that a partition has changed."""
        self._woken[replica] = None
        self._broker.parking.wake(self)

    def look_again(self) -> None:
        """Answer if there is enough now; only what has changed is looked at."""
        self._call.attempt(self._look_again)

    def _look_again(self) -> None:
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


def _in_turn(selection: Selection, call: Call) -> Sequence[FetchedPartition]:
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
