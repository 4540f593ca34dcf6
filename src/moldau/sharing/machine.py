"""The coordinator of shares: one machine for each partition of __share_group_state."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from moldau.coordination.command import DONE, Answer, Command, Done, Ticket
from moldau.coordination.decision import Decision, SetTimer, UnaskedDecision
from moldau.coordination.machine import DecisionTable
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.metadata.settings.broker import BrokerSettings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message
from moldau.protocol.stored import share_group_state as stored
from moldau.sharing.commands import (
    DeleteBefore,
    DeleteState,
    ForgetTopicStates,
    InitializeState,
    ReadState,
    ReadSummary,
    Summary,
    WriteState,
)
from moldau.sharing.share_state import (
    UNSET,
    ShareKey,
    ShareState,
    share_key,
    tombstone,
    update_record,
)


@dataclass(frozen=True, slots=True)
class PruneTimer:
    """It is time to delete what is before the oldest snapshot that counts."""


class ShareContext(Protocol):
    """The broker around the coordinator."""

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""

    def has_partition(self, topic_id: bytes, partition: int) -> bool:
        """Whether the cluster has a partition."""


class ShareMachine:
    """All states of a partition; a `coordination.machine.Machine`.

    A state is a snapshot and the updates behind it. What is before the oldest snapshot that counts
    is deleted from time to time; so that it moves, states that are not written get another
    snapshot now and then.
    """

    def __init__(self, context: ShareContext) -> None:
        self._context = context
        self._states: dict[ShareKey, ShareState] = {}
        self._update_counts: dict[ShareKey, int] = {}
        self._snapshots: dict[ShareKey, Offset] = {}
        """Where the last snapshot of each is."""
        self._end = Offset(0)

    def decide(
        self, command: Command[Answer], ticket: Ticket[Answer], now: Instant
    ) -> Decision[Answer]:
        """Decide one of `commands`."""
        return DECISIONS.decide(self, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> UnaskedDecision:
        """Decide what follows from the only timer."""
        return DECISIONS.expire(self, key, now)

    def prune(self, _timer: PruneTimer, now: Instant) -> UnaskedDecision:
        """Have what is not needed deleted, and make more of it not needed."""
        needed = min(self._snapshots.values(), default=self._end)
        return Decision(
            [
                self._snapshot_of(self._states[key], now).snapshot(key)
                for key in (self._cold_keys(now) if self._is_mostly_old(needed) else ())
            ],
            effects=[DeleteBefore(needed), self._timer(now)],
            is_atomic=False,
        )

    def _is_mostly_old(self, needed: Offset) -> bool:
        """Whether more is kept for nothing than snapshots of all states would take."""
        return self._end - needed > 2 * len(self._states)

    def _cold_keys(self, now: Instant) -> list[ShareKey]:
        cold_ms = self._context.settings.share_coordinator_cold_partition_snapshot_interval_ms
        return [
            key for key, state in self._states.items() if now.wall_ms - state.written_ms >= cold_ms
        ]

    def loaded(self, now: Instant) -> UnaskedDecision:
        """Begin to tidy up."""
        return Decision(effects=[self._timer(now)])

    def _timer(self, now: Instant) -> SetTimer:
        interval_ms = self._context.settings.share_coordinator_state_topic_prune_interval_ms
        return SetTimer(PruneTimer(), now.monotonic + interval_ms / 1000)

    # What was recorded.

    def replay(
        self,
        offset: Offset,
        producer_id: ProducerId,  # noqa: ARG002 - no transaction writes here
        key: Message,
        value: Message | None,
    ) -> None:
        """Apply a record."""
        self._end = Offset(offset + 1)
        if isinstance(key, stored.ShareUpdateKey):
            # Without its snapshot an update says nothing: that was deleted, with a tombstone.
            share = share_key(key.group_id, key.topic_id, key.partition)
            if value is not None and (state := self._states.get(share)) is not None:
                assert isinstance(value, stored.ShareUpdateValue)
                self._states[share] = state.updated(value)
                self._update_counts[share] = self._update_counts.get(share, 0) + 1
        elif isinstance(key, stored.ShareSnapshotKey):
            share = share_key(key.group_id, key.topic_id, key.partition)
            self._update_counts.pop(share, None)
            if value is None:
                self._states.pop(share, None)
                self._snapshots.pop(share, None)
            else:
                assert isinstance(value, stored.ShareSnapshotValue)
                self._states[share] = ShareState.of_snapshot(value)
                self._snapshots[share] = offset

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Nothing of a transaction is in this topic."""

    # What is asked.

    def initialize(
        self, command: InitializeState, _ticket: Ticket[Done], now: Instant
    ) -> Decision[Done]:
        """Begin a state."""
        self._check(command.key)
        known = self._states.get(command.key)
        if known is not None and UNSET != command.state_epoch < known.state_epoch:
            raise Refusal(ErrorCode.FENCED_STATE_EPOCH, _text(ErrorCode.FENCED_STATE_EPOCH))
        state = ShareState(
            state_epoch=command.state_epoch,
            start_offset=command.start_offset,
            delivery_complete_count=UNSET if command.start_offset == UNSET else 0,
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            created_ms=now.wall_ms,
            written_ms=now.wall_ms,
        )
        return Decision([state.snapshot(command.key)], DONE, is_pure=True)

    def read(
        self, command: ReadState, _ticket: Ticket[ShareState], now: Instant
    ) -> Decision[ShareState]:
        """Tell a state, to a leader that is not fenced."""
        state = self._checked(command.key, "Read", command.leader_epoch)
        if command.leader_epoch in (UNSET, state.leader_epoch):
            return Decision(response=state)
        write = WriteState(
            command.key,
            state.state_epoch,
            command.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            (),
        )
        return Decision([self._written(write, now)], state, is_pure=True)

    def write(self, command: WriteState, _ticket: Ticket[Done], now: Instant) -> Decision[Done]:
        """Take what a leader tells."""
        return Decision([self._written(command, now)], DONE, is_pure=True)

    def _written(self, command: WriteState, now: Instant) -> StoredRecord:
        key = command.key
        state = self._checked(key, "Write", command.leader_epoch)
        if UNSET != command.state_epoch < state.state_epoch:
            raise Refusal(ErrorCode.FENCED_STATE_EPOCH, _text(ErrorCode.FENCED_STATE_EPOCH))
        told = (
            state.leader_epoch if command.leader_epoch == UNSET else command.leader_epoch,
            command.start_offset,
            command.delivery_complete_count,
            command.batches,
        )
        updates_max = self._context.settings.share_coordinator_snapshot_update_records_per_snapshot
        if self._update_counts.get(key, 0) >= updates_max:
            return self._snapshot_of(state.changed(*told), now).snapshot(key)
        return update_record(key, state.snapshot_epoch, *told)

    def delete(self, command: DeleteState, _ticket: Ticket[Done], _now: Instant) -> Decision[Done]:
        """Forget a state."""
        self._check(command.key)
        known = command.key in self._states
        return Decision([tombstone(command.key)] if known else (), DONE)

    def summarize(
        self, command: ReadSummary, _ticket: Ticket[Summary], _now: Instant
    ) -> Decision[Summary]:
        """Tell what describes a state."""
        self._check(command.key)
        state = self._states.get(command.key)
        if state is None:
            return Decision(response=Summary())
        return Decision(
            response=Summary(
                state.state_epoch,
                state.leader_epoch,
                state.start_offset,
                state.delivery_complete_count,
            )
        )

    def forget(
        self, command: ForgetTopicStates, _ticket: Ticket[Done], _now: Instant
    ) -> Decision[Done]:
        """Forget topics that are gone."""
        gone = [key for key in self._states if key.topic_id in command.topic_ids]
        return Decision([tombstone(key) for key in gone], DONE, is_atomic=False)

    def _check(self, key: ShareKey) -> None:
        if key.partition < 0:
            raise Refusal(ErrorCode.INVALID_REQUEST, "A partition's number is not negative.")
        if not self._context.has_partition(key.topic_id, key.partition):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise Refusal(code, _text(code))

    def _checked(self, key: ShareKey, operation: str, leader_epoch: int) -> ShareState:
        state = self._states.get(key)
        if state is None and key.partition >= 0:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{operation} before the state of the share partition is initialized.",
            )
        self._check(key)
        assert state is not None, "the key is checked"
        if UNSET != leader_epoch < state.leader_epoch:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH, _text(ErrorCode.FENCED_LEADER_EPOCH))
        return state

    def _snapshot_of(self, state: ShareState, now: Instant) -> ShareState:
        return ShareState(
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            state.batches,
            state.snapshot_epoch + 1,
            now.wall_ms,
            now.wall_ms,
        )


def _text(code: ErrorCode) -> str:
    return _TEXTS[code]


_TEXTS: Final = {
    ErrorCode.FENCED_STATE_EPOCH: "The state was begun anew since, in a later epoch.",
    ErrorCode.FENCED_LEADER_EPOCH: "A later leader of the partition has been here.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "There is no such partition.",
}

DECISIONS: Final = DecisionTable[ShareMachine](
    {
        InitializeState: ShareMachine.initialize,
        ReadState: ShareMachine.read,
        WriteState: ShareMachine.write,
        DeleteState: ShareMachine.delete,
        ReadSummary: ShareMachine.summarize,
        ForgetTopicStates: ShareMachine.forget,
    },
    {PruneTimer: ShareMachine.prune},
)
