"""Idempotence and transactions in one partition: which batches may follow, and what they change.

`check` decides whether a batch may be appended and changes nothing. `apply` notes a batch that is
in the log and refuses nothing: it is what recovery replays, and what a follower does with what its
leader accepted.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final

from moldau._native.producers import ProducerState, ProducerTable
from moldau._native.records import Batch
from moldau.kernel.disk import Buffer
from moldau.kernel.ids import Offset, Position, ProducerEpoch
from moldau.log.errors import ProducerError
from moldau.log.markers import Marker, find_marker
from moldau.log.producer_state import NO_OFFSET, WrittenBatch, find_duplicate
from moldau.log.unstable import CompletedTransaction, UnstableTransaction, UnstableTransactions
from moldau.protocol.errors import ErrorCode

NO_POSITION: Final = Position(-1)
PRODUCER_EPOCH_MAX: Final = (1 << 15) - 1


class Origin(Enum):
    """Who asks for an append."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # offsets and markers: no sequence numbers, but fenced
    REPLICATION = "replication"  # checked by the leader already


class Producers(ProducerTable):
    """All producers of a partition.

    A producer that is not here may begin with any sequence number: it may have expired, or its
    records are gone (so Kafka itself no longer answers UNKNOWN_PRODUCER_ID).
    """

    __slots__ = ("_transactions", "unstable")

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        super().__init__(states)
        self._transactions = UnstableTransactions()
        self.unstable = self._transactions.unstable  # every fetch asks whether there are any
        begun = [s for s in self.states.values() if s.transaction_first_offset >= 0]
        for state in sorted(begun, key=lambda s: s.transaction_first_offset):
            self._begin(state, state.transaction_first_offset, NO_OFFSET, NO_POSITION)

    @property
    def first_unstable(self) -> UnstableTransaction | None:
        """The transaction that bounds the stable offset, None if the high watermark does."""
        return self._transactions.first_unstable

    @property
    def first_open(self) -> UnstableTransaction | None:
        """The oldest transaction without a marker."""
        return self._transactions.first_open

    def check_any(
        self, batch: Batch, data: Buffer, origin: Origin, transaction_version: int
    ) -> WrittenBatch | None:
        """Decide about any batch of a producer: None if it may be appended."""
        if not batch.is_control:
            return self.check(batch, origin)
        marker = find_marker(batch, data)
        if marker is not None:
            self.check_marker(batch, marker, transaction_version=transaction_version)
        return None

    def check(self, batch: Batch, origin: Origin) -> WrittenBatch | None:
        """Decide about a data batch of a producer: None if it may be appended.

        A batch that is in the log already returns its place there; `ProducerError` otherwise.
        """
        state = self.states.get(batch.producer_id)
        if state is None or origin is Origin.REPLICATION:
            return None
        if origin is Origin.CLIENT and self.follows(batch):
            return None
        if batch.producer_epoch < state.producer_epoch:
            raise _fenced(state, batch.producer_epoch)
        if origin is Origin.CLIENT:
            if batch.producer_epoch > state.producer_epoch:
                if batch.base_sequence != 0 and state.producer_epoch >= 0:
                    raise _out_of_order(state, batch, 0)
            # Sequences run on within an epoch, so the next one is never a duplicate.
            elif batch.base_sequence != state.next_sequence:
                duplicate = find_duplicate(state, batch.base_sequence, batch.last_offset_delta)
                if duplicate is not None:
                    return duplicate
                raise _out_of_order(state, batch, state.next_sequence)
        if state.transaction_first_offset >= 0 and not batch.is_transactional:
            raise ProducerError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {state.producer_id} has a transaction open since offset "
                f"{state.transaction_first_offset} and sent a batch outside of it",
            )
        return None

    def check_marker(self, batch: Batch, marker: Marker, *, transaction_version: int) -> None:
        """Decide about a marker from a coordinator; `ProducerError` if it comes too late."""
        state = self.states.get(batch.producer_id)
        if state is None:
            return
        epoch = batch.producer_epoch
        if epoch < state.producer_epoch or (
            # KIP-890: since version 2 a marker has its data's epoch plus one, so the same epoch is
            # a late marker of the transaction before (KAFKA-19446), or this one's sent again. At
            # the largest epoch there is nothing to add.
            transaction_version >= 2
            and epoch == state.producer_epoch
            and state.transaction_first_offset >= 0
            and epoch != PRODUCER_EPOCH_MAX
        ):
            raise _fenced(state, epoch)
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise ProducerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker for producer {state.producer_id} has coordinator epoch "
                f"{marker.coordinator_epoch}, a later one had {state.coordinator_epoch}",
            )

    def apply(self, batch: Batch, segment_base_offset: Offset, position: Position) -> None:
        """Note a data batch whose offset is assigned; a transaction may begin at its position."""
        state = self.note(batch)
        if state.transaction_first_offset < 0 and batch.is_transactional:
            self._begin(state, Offset(batch.base_offset), segment_base_offset, position)

    def apply_marker(self, batch: Batch, marker: Marker) -> CompletedTransaction | None:
        """Note a marker whose offset is assigned; None if the transaction wrote nothing here."""
        state = self.change(batch)
        state.enter_epoch(ProducerEpoch(batch.producer_epoch))
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp = marker.timestamp
        first_offset = state.transaction_first_offset
        if first_offset < 0:
            return None
        state.transaction_first_offset = NO_OFFSET
        self.has_completed = True
        return self._transactions.complete(
            first_offset, Offset(batch.base_offset), is_abort=marker.is_abort
        )

    def replay(
        self, batch: Batch, data: Buffer, segment_base_offset: Offset, position: Position
    ) -> CompletedTransaction | None:
        """Apply any batch as it was read back: the whole state follows from the log."""
        if batch.producer_id < 0:
            return None
        if not batch.is_control:
            self.apply(batch, segment_base_offset, position)
            return None
        marker = find_marker(batch, data)
        return None if marker is None else self.apply_marker(batch, marker)

    def note_committed(self, high_watermark: Offset) -> None:
        """The markers below `high_watermark` hold the stable offset back no longer."""
        self.has_completed = self._transactions.note_committed(high_watermark)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget the producers that were idle too long; return how many there were."""
        expired = [s for s in self.states.values() if s.is_expired(now_ms, expiration_ms)]
        for state in expired:
            del self.states[state.producer_id]
        return len(expired)

    def adopt(self, others: "Producers") -> None:
        """Know what others do who have seen the same batches, and earlier ones.

        Of a transaction that began before the first batch here, only what is here counts.
        """
        states = []
        for other in others.states.values():
            own = self.states.get(other.producer_id)
            state = other.copy()
            state.transaction_first_offset = NO_OFFSET
            if own is not None:
                state.transaction_first_offset = own.transaction_first_offset
            states.append(state)
        self.replace_states(states)

    def rewind(self, end_offset: Offset) -> None:
        """What was applied since the last mark, from `end_offset` on, was not written after all."""
        self.forget_changes()
        self._transactions.rewind(end_offset)

    def _begin(
        self, state: ProducerState, first: Offset, segment_base: Offset, position: Position
    ) -> None:
        state.transaction_first_offset = first
        self._transactions.begin(
            UnstableTransaction(state.producer_id, first, segment_base, position)
        )


def _fenced(state: ProducerState, producer_epoch: int) -> ProducerError:
    return ProducerError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {state.producer_id} wrote with epoch {producer_epoch}, "
        f"but epoch {state.producer_epoch} was here already",
    )


def _out_of_order(state: ProducerState, batch: Batch, expected: int) -> ProducerError:
    return ProducerError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {state.producer_id} sent sequence number {batch.base_sequence} of epoch "
        f"{batch.producer_epoch}, expected was {expected}",
    )
