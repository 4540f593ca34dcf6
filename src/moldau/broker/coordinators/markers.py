"""The end of a transaction, written into each of its partitions."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.broker.coordinators.shard import Shard, ShardState
from moldau.broker.internal_topics import OFFSETS
from moldau.coordination.command import Done
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.errors import AppendError
from moldau.protocol.errors import ErrorCode
from moldau.records.control import build_end_transaction
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica
from moldau.transactions.commands import CompleteTransaction, WriteMarkers
from moldau.transactions.transaction import NO_EPOCH

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker

RETRY_SECONDS_FIRST: Final = 0.02
RETRY_SECONDS_MAX: Final = 1.0

# The transaction is over in a partition that is gone, or that has seen a later epoch already.
_OVER: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH}
)

MarkerDone = Callable[[ErrorCode], None]


class MarkerOrder(NamedTuple):
    """Which marker to write."""

    producer: ProducerIdentity
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(
    broker: "CoordinatingBroker", partition: TopicPartition, order: MarkerOrder, then: MarkerDone
) -> None:
    """End a producer's transaction in a partition that is led here; `then` hears when it is."""
    if order.producer.id == NO_PRODUCER or order.producer.epoch == NO_EPOCH:
        then(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's answer for a marker without a producer
        return
    try:
        replica = broker.replicas.find_leader(partition)
    except ReplicaError as error:
        then(error.code)
        return
    if replica.is_under_min_in_sync:
        then(ErrorCode.NOT_ENOUGH_REPLICAS)
    elif _is_written(replica, order):
        _wait(replica, then)
    elif partition.topic == OFFSETS:
        _write_group_marker(broker, partition.partition, order, then)
    else:
        _append(broker, replica, order, then)


def _is_written(replica: Replica, order: MarkerOrder) -> bool:
    """Whether the marker is there, from before a restart: there is one for each transaction."""
    assert replica.log is not None, "it leads"
    state = replica.log.producers.states.get(order.producer.id)
    return (
        state is not None
        and state.producer_epoch == order.producer.epoch
        and 0 <= state.coordinator_epoch <= order.coordinator_epoch
        and state.transaction_first_offset < 0
    )


def _append(
    broker: "CoordinatingBroker", replica: Replica, order: MarkerOrder, then: MarkerDone
) -> None:
    now = broker.environment.now()
    marker = build_end_transaction(
        commit=order.is_commit,
        coordinator_epoch=order.coordinator_epoch,
        producer_id=order.producer.id,
        producer_epoch=order.producer.epoch,
        timestamp=now.wall_ms,
    )
    version = order.transaction_version
    try:
        replica.append_own(marker, now, _MarkerCallback(then), transaction_version=version)
    except AppendError as error:
        then(error.code)


def _write_group_marker(
    broker: "CoordinatingBroker", partition: int, order: MarkerOrder, then: MarkerDone
) -> None:
    shard = broker.coordinators.groups.shard(partition)
    if shard is None:
        then(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return

    def written(outcome: Done | Refusal) -> None:
        code = outcome.code if isinstance(outcome, Refusal) else ErrorCode.NONE
        then(told_code(ErrorReader.MARKER_WRITER, code))

    shard.write_marker(
        order.producer,
        is_commit=order.is_commit,
        coordinator_epoch=order.coordinator_epoch,
        transaction_version=order.transaction_version,
        then=written,
    )


def _wait(replica: Replica, then: MarkerDone) -> None:
    """Tell when everything that the log has is committed."""
    log = replica.log
    assert log is not None, "it leads"
    if log.high_watermark >= log.log_end:
        then(ErrorCode.NONE)
    else:
        replica.wait_committed(Offset(log.log_end), _MarkerCallback(then))


class _MarkerCallback:
    """Waits for a marker's commit."""

    __slots__ = ("_then",)

    def __init__(self, then: MarkerDone) -> None:
        self._then = then

    def committed(self, replica: Replica) -> None:  # noqa: ARG002 - one marker, one replica
        """Tell that it is there."""
        self._then(ErrorCode.NONE)

    def lost(self, replica: Replica, error: ReplicaError) -> None:  # noqa: ARG002
        """Tell that it is not."""
        self._then(error.code)


class TransactionMarkers:
    """One prepared transaction, until every partition has its marker.

    A partition that cannot be written to now is tried again, for as long as the decision holds:
    a restart of the coordinator's shard begins another `TransactionMarkers`.
    """

    def __init__(self, broker: "CoordinatingBroker", shard: Shard, markers: WriteMarkers) -> None:
        self._broker = broker
        self._shard = shard
        self._machine = shard.machine
        self._markers = markers
        self._order = MarkerOrder(
            markers.producer, markers.is_commit, shard.epoch, markers.transaction_version
        )
        self._missing = set(markers.partitions)
        self._due = sorted(markers.partitions)
        self._retry_seconds = RETRY_SECONDS_FIRST
        self._is_retrying = False

    def go_on(self) -> None:
        """Write what is missing, and is not being written."""
        self._is_retrying = False
        if not self._is_current:
            return
        if not self._missing:
            self._complete()
            return
        due, self._due = self._due, []
        for partition in due:
            write_marker(self._broker, partition, self._order, partial(self._heard, partition))

    @property
    def _is_current(self) -> bool:
        return self._shard.state is ShardState.ACTIVE and self._shard.machine is self._machine

    def _heard(self, partition: TopicPartition, code: ErrorCode) -> None:
        if code in _OVER:
            self._missing.discard(partition)
            if not self._missing and self._is_current:
                self._complete()
        elif code is not ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            # (A later coordinator has been there: it goes on with this transaction, not we.)
            self._due.append(partition)
            self._retry_later()

    def _retry_later(self) -> None:
        if self._is_retrying:
            return
        self._is_retrying = True
        environment = self._broker.environment
        environment.at(environment.now().monotonic + self._retry_seconds, self.go_on)
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)

    def _complete(self) -> None:
        markers = self._markers
        command = CompleteTransaction(markers.transactional_id, markers.producer)
        self._shard.submit(command, self._completed)

    def _completed(self, outcome: Done | Refusal) -> None:
        if isinstance(outcome, Refusal) and self._is_current:
            # Too few replicas of the coordinator's own partition: nothing was recorded.
            self._retry_later()
