"""The producer's state machine: what is sent to whom, in which order, and what is tried again.

`handle(event, now)` returns what to do; nothing here waits, reads a clock or knows a connection.

The laws, which tests/unit/client/test_outbox_model.py checks:
- every batch is delivered or failed, once;
- with an identity, no record is stored twice, and none of a delivered batch is missing;
- a partition's batches are stored in the order in which they were closed.

How they are kept: each partition has the shipments that have a sequence number and no outcome
(`unacked`, in order), and behind them the batches that have none (`queue`). A shipment that must be
sent again goes alone, and only when it is the first; new ones follow only when none waits to be
sent again. So a broker that refuses one refuses all behind it, until the first has arrived.

When a shipment is given up, there is a gap: those behind it keep their numbers, because they may be
stored already, and the broker says which is true. Stored: it answers as it did the first time. Not
stored: the first of them is out of order. Then, with nothing in flight, the partition goes on with
the next epoch of the producer, where numbers begin with 0 (KIP-360).

A broker recognizes the last five batches of a producer. So no more than that are sent from the
first shipment without an outcome on, those included that have one (`window`).

A broker that has nothing of a producer takes any number from it. So until something of an epoch is
stored in a partition, one shipment is in flight there: a second could overtake a refused first.

In a transaction (`is_transactional`) it does not choose its identity, `Renewed` gives it one. A
partition's batches wait until the partition is enlisted. The first batch that is given up ends the
transaction: nothing that is not in flight leaves any more, until the next one begins.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.client.errors import (
    ClientError,
    KafkaError,
    RequestTimeoutError,
    TransactionAbortedError,
)
from moldau.client.outbox_events import (
    NOBODY,
    Abandoned,
    Answered,
    BatchOutcome,
    Closed,
    Delivered,
    Enlist,
    Enlisted,
    Failed,
    Halved,
    Identify,
    IdentityFound,
    LeadersFound,
    LeadersNotFound,
    Lost,
    NotIdentified,
    OutboxEffect,
    OutboxEvent,
    OutboxProducer,
    OutboxTick,
    OutgoingBatch,
    Refresh,
    Renewed,
    Request,
    Send,
    Shipment,
)
from moldau.client.outbox_partition import PartitionOutbox
from moldau.protocol.errors import ErrorCode

EPOCH_MAX: Final = (1 << 15) - 1

STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that say that the partition is somewhere else."""

BROKEN_SEQUENCE: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""Errors that say that a batch does not follow what the broker has of this producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRules:
    """The settings that matter here, times in seconds."""

    is_idempotent: bool
    in_flight_max: int
    request_bytes_max: int
    retries: int
    delivery_timeout: float
    backoff: float
    backoff_max: float
    is_transactional: bool = False


class _Node:
    __slots__ = ("in_flight", "not_before")

    def __init__(self) -> None:
        self.in_flight = 0
        self.not_before = 0.0


class Outbox:
    """All batches on their way."""

    def __init__(
        self,
        rules: OutboxRules,
        *,
        split: Callable[[OutgoingBatch], Sequence[OutgoingBatch]],
        chance: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._split = split
        self._chance = chance
        self._identity: OutboxProducer | None = None if rules.is_idempotent else NOBODY
        self._identify_at: float | None = 0.0
        self._partitions: dict[tuple[str, int], PartitionOutbox] = {}
        self._active: dict[tuple[str, int], PartitionOutbox] = {}  # those with batches
        self._nodes: dict[int, _Node] = {}
        self._leaders: dict[str, Mapping[int, int]] = {}
        self._refresh_at: dict[str, float | None] = {}  # stale topics; None while being asked
        self._enlisted: dict[tuple[str, int], bool] = {}  # False while it is asked for
        self._end: Exception | None = None  # why nothing of this transaction is sent any more
        self._effects: list[OutboxEffect] = []
        self.next_time: float | None = None
        """When to tick next, at the latest; None if there is nothing to wait for."""

    def handle(self, event: OutboxEvent, now: float) -> list[OutboxEffect]:  # noqa: C901, PLR0912 - an event each
        """Take notice of what has happened; return what to do about it."""
        match event:
            case Closed(batches):
                self._close(batches)
            case Answered(request, outcomes, throttle_ms):
                self._nodes[request.node].not_before = now + throttle_ms / 1000
                self._answer(request, outcomes, now)
            case Lost(request, error):
                self._lose(request, error, now)
            case IdentityFound(identity):
                self._identity = identity
                self._identify_at = now
            case NotIdentified(error, is_final):
                self._stay_nobody(error, now, is_final=is_final)
            case LeadersFound(topic, leaders):
                self._find_leaders(topic, leaders)
            case LeadersNotFound(topic, error):
                self._miss_leaders(topic, error, now)
            case OutboxTick():
                self._expire(now)
            case Enlisted(places):
                self._enlisted |= dict.fromkeys(places, True)
            case Abandoned(error):
                self._end = self._end or error
            case Renewed(identity):
                self._renew(identity)
        if self._end is None:
            self._go_on(now)
        else:
            self._abandon(self._end)
        if isinstance(event, OutboxTick) or self.next_time is None:
            self.next_time = self._find_next_time(now)
        effects, self._effects = self._effects, []
        return effects

    # What has happened.

    def _close(self, batches: Sequence[OutgoingBatch]) -> None:
        for batch in batches:
            place = batch.topic, batch.partition
            partition = self._partitions.get(place)
            if partition is None:
                leader = self._leaders.get(batch.topic, {}).get(batch.partition)
                partition = self._partitions[place] = PartitionOutbox(place, leader)
            partition.queue.append(batch)
            self._active[place] = partition
            self._be_woken(batch.created + self._rules.delivery_timeout)

    def _answer(self, request: Request, outcomes: Sequence[BatchOutcome], now: float) -> None:
        self._nodes[request.node].in_flight -= 1
        for shipment, outcome in zip(request.shipments, outcomes, strict=True):
            shipment.is_in_flight = False
            if shipment.is_done:
                continue  # it was given up meanwhile
            partition = self._partition_of(shipment)
            # DUPLICATE_SEQUENCE_NUMBER: stored too long ago for the broker to know where.
            if outcome.code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._deliver(partition, shipment, outcome)
            else:
                self._refuse(partition, shipment, outcome, now)

    def _deliver(
        self, partition: PartitionOutbox, shipment: Shipment, outcome: BatchOutcome
    ) -> None:
        partition.acknowledge(shipment)
        self._remove(partition, shipment)
        self._effects.append(Delivered(shipment.batch, outcome.base_offset, outcome.append_time_ms))

    def _refuse(
        self, partition: PartitionOutbox, shipment: Shipment, outcome: BatchOutcome, now: float
    ) -> None:
        topic, index = partition.place
        error = KafkaError(outcome.code, f"{topic}-{index}", outcome.message)
        partition.last_error = error
        is_first = partition.unacked[0] is shipment
        if error.code is ErrorCode.MESSAGE_TOO_LARGE and shipment.batch.record_count > 1:
            self._halve(partition, shipment)
        elif error.code in BROKEN_SEQUENCE and self._rules.is_idempotent:
            # Behind another it is only out of order as long as that one is.
            if is_first and self._rules.is_transactional:
                self._give_up(partition, shipment, error)
                return
            if is_first:
                partition.needs_epoch = True
            self._try_again(partition, shipment, error, now)
        elif error.retriable:
            if error.code in STALE_METADATA:
                self._doubt_leader(partition, now)
            self._try_again(partition, shipment, error, now)
        else:
            self._give_up(partition, shipment, error)

    def _halve(self, partition: PartitionOutbox, shipment: Shipment) -> None:
        halves = self._split(shipment.batch)
        partition.replace(shipment, halves)
        self._effects.append(Halved(shipment.batch, halves))

    def _lose(self, request: Request, error: Exception, now: float) -> None:
        self._nodes[request.node].in_flight -= 1
        for shipment in request.shipments:
            shipment.is_in_flight = False
            if shipment.is_done:
                continue
            partition = self._partition_of(shipment)
            partition.last_error = error
            self._doubt_leader(partition, now)
            self._try_again(partition, shipment, error, now)

    def _try_again(
        self, partition: PartitionOutbox, shipment: Shipment, error: Exception, now: float
    ) -> None:
        if shipment.attempts > self._rules.retries:
            self._give_up(partition, shipment, error)
        elif partition.unacked[0] is shipment:
            wait = min(
                self._rules.backoff * 2 ** min(shipment.attempts - 1, 20), self._rules.backoff_max
            )
            partition.retry_at = now + wait * (0.8 + 0.4 * self._chance())
            self._be_woken(partition.retry_at)

    def _give_up(self, partition: PartitionOutbox, shipment: Shipment, error: Exception) -> None:
        partition.has_gap = self._rules.is_idempotent
        self._remove(partition, shipment)
        self._fail(shipment.batch, error)

    def _fail(self, batch: OutgoingBatch, error: Exception) -> None:
        self._effects.append(Failed(batch, error))
        if self._rules.is_transactional and self._end is None:
            self._end = TransactionAbortedError(
                f"another record of its transaction failed: {error}"
            )
            self._end.__cause__ = error

    def _remove(self, partition: PartitionOutbox, shipment: Shipment) -> None:
        partition.remove(shipment)
        if not partition.unacked and not partition.queue:
            self._active.pop(partition.place, None)

    def _doubt_leader(self, partition: PartitionOutbox, now: float) -> None:
        partition.leader = None
        self._refresh_at.setdefault(partition.place[0], now)

    def _find_leaders(self, topic: str, leaders: Mapping[int, int]) -> None:
        self._refresh_at.pop(topic, None)
        self._leaders[topic] = leaders
        for (name, index), partition in self._partitions.items():
            if name == topic:
                partition.leader = leaders.get(index)

    def _miss_leaders(self, topic: str, error: Exception, now: float) -> None:
        self._refresh_at[topic] = now + self._rules.backoff
        for (name, _), partition in self._active.items():
            if name == topic:
                partition.last_error = error

    def _stay_nobody(self, error: Exception, now: float, *, is_final: bool) -> None:
        self._identify_at = now + self._rules.backoff
        for partition in list(self._active.values()):
            partition.last_error = error
            if is_final:
                self._give_up_queue(partition, lambda _: True, error)

    def _expire(self, now: float) -> None:
        def is_late(batch: OutgoingBatch) -> bool:
            return batch.created + self._rules.delivery_timeout <= now

        for partition in list(self._active.values()):
            for shipment in [each for each in partition.unacked if is_late(each.batch)]:
                self._give_up(partition, shipment, self._too_late(partition))
            self._give_up_queue(partition, is_late, self._too_late(partition))

    def _give_up_queue(
        self,
        partition: PartitionOutbox,
        condition: Callable[[OutgoingBatch], bool],
        error: Exception,
    ) -> None:
        while partition.queue and condition(partition.queue[0]):
            self._fail(partition.queue.popleft(), error)
        if not partition.unacked and not partition.queue:
            self._active.pop(partition.place, None)

    def _abandon(self, error: Exception) -> None:
        """Give up what is not in flight."""
        for partition in list(self._active.values()):
            for shipment in [each for each in partition.unacked if not each.is_in_flight]:
                self._give_up(partition, shipment, error)
            self._give_up_queue(partition, lambda _: True, error)

    def _renew(self, identity: OutboxProducer) -> None:
        assert not self._active, "a transaction ends when nothing of it is left"
        self._identity = identity
        self._enlisted.clear()
        self._end = None

    def _too_late(self, partition: PartitionOutbox) -> ClientError:
        topic, index = partition.place
        limit_ms = self._rules.delivery_timeout * 1000
        why = f": {partition.last_error}" if partition.last_error else ""
        return RequestTimeoutError(
            f"{topic}-{index}: not delivered within delivery.timeout.ms={limit_ms:.0f}{why}"
        )

    # What is to be done.

    def _go_on(self, now: float) -> None:
        if not self._active:
            return
        ready: dict[int, list[PartitionOutbox]] = {}
        for partition in self._active.values():
            if partition.leader is None:
                self._ask_leader(partition.place[0], now)
            elif partition.retry_at <= now and self._may_send(partition):
                ready.setdefault(partition.leader, []).append(partition)
        for node_id, partitions in ready.items():
            node = self._nodes.setdefault(node_id, _Node())
            if node.not_before > now:
                self._be_woken(node.not_before)
                continue
            while partitions and node.in_flight < self._rules.in_flight_max:
                request = Request(node_id, list(self._load(partitions)))
                node.in_flight += 1
                self._effects.append(Send(request))
                partitions = [each for each in partitions if self._may_send(each)]  # noqa: PLW2901
            # Next time those go first that had to stay.
            for partition in partitions:
                self._active[partition.place] = self._active.pop(partition.place)
        # Not yet there, or no longer: its epochs are used up.
        if self._identity is None and not self._rules.is_transactional:
            self._ask_identity(now)

    def _may_send(self, partition: PartitionOutbox) -> bool:
        """Whether something can be sent now; brings the partition's epoch about if that is due."""
        if self._rules.is_transactional and not self._is_enlisted(partition.place):
            return False
        unacked = partition.unacked
        if unacked and not unacked[0].is_in_flight:
            return self._has_epoch(partition)
        if any(not each.is_in_flight for each in unacked):
            return False
        return (
            bool(partition.queue)
            and not partition.has_gap
            and len(partition.window) < (self._rules.in_flight_max if partition.is_known else 1)
            and self._has_epoch(partition)
        )

    def _is_enlisted(self, place: tuple[str, int]) -> bool:
        if place not in self._enlisted:
            self._enlisted[place] = False
            self._effects.append(Enlist(place))
        return self._enlisted[place]

    def _has_epoch(self, partition: PartitionOutbox) -> bool:
        if self._rules.is_transactional:
            assert self._identity is not None, "it comes before the first transaction"
            if partition.identity != self._identity:
                partition.begin(self._identity, is_known=False)
            return True
        if partition.identity is not None and not partition.needs_epoch:
            return True
        if any(each.is_in_flight for each in partition.unacked):
            return False
        if self._identity is not None and partition.identity == self._identity:
            producer_id, epoch = self._identity
            self._identity = OutboxProducer(producer_id, epoch + 1) if epoch < EPOCH_MAX else None
        if self._identity is None:
            return False
        partition.begin(self._identity, is_known=not self._rules.is_idempotent)
        return True

    def _load(self, partitions: Sequence[PartitionOutbox]) -> Iterator[Shipment]:
        """Take what goes into one request: one batch of each partition, while there is room."""
        size = 0
        for partition in partitions:
            first = partition.unacked[0] if partition.unacked else None
            is_again = first is not None and not first.is_in_flight
            batch = first.batch if first is not None and is_again else partition.queue[0]
            if size and size + batch.size > self._rules.request_bytes_max:
                continue
            size += batch.size
            if first is not None and is_again:
                shipment = first
            else:
                shipment = partition.number(partition.queue.popleft())
            shipment.is_in_flight = True
            shipment.attempts += 1
            yield shipment

    def _ask_identity(self, now: float) -> None:
        if self._identify_at is None:
            return
        if self._identify_at > now:
            self._be_woken(self._identify_at)
            return
        self._identify_at = None
        self._effects.append(Identify())

    def _ask_leader(self, topic: str, now: float) -> None:
        due = self._refresh_at.setdefault(topic, now)
        if due is None:
            return
        if due > now:
            self._be_woken(due)
            return
        self._refresh_at[topic] = None
        self._effects.append(Refresh(topic))

    # Time.

    def _be_woken(self, when: float) -> None:
        if self.next_time is None or when < self.next_time:
            self.next_time = when

    def _find_next_time(self, now: float) -> float | None:
        times = []
        for partition in self._active.values():
            oldest = partition.unacked[0].batch if partition.unacked else partition.queue[0]
            times.append(oldest.created + self._rules.delivery_timeout)
            times.append(partition.retry_at)
        times += [node.not_before for node in self._nodes.values()]
        if self._active:
            times += [due for due in self._refresh_at.values() if due is not None]
            if self._identity is None and self._identify_at is not None:
                times.append(self._identify_at)
        return min((time for time in times if time > now), default=None)

    def _partition_of(self, shipment: Shipment) -> PartitionOutbox:
        return self._partitions[shipment.batch.topic, shipment.batch.partition]
