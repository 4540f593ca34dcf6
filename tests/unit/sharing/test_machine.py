"""The share coordinator: epochs, snapshots, what is deleted."""

import pytest

from moldau.coordination.command import Done, Ticket
from moldau.coordination.decision import SetTimer
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, TopicId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.share_group_state import ShareSnapshotKey, ShareUpdateKey
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
from moldau.sharing.machine import PruneTimer
from moldau.sharing.share_state import ShareKey, ShareState
from moldau.sharing.states import RecordState, StateBatch
from tests.unit.sharing.coordinators import TYPES, Context, Coordinator, decode_record

TOPIC = TopicId(b"t" * 16)
KEY = ShareKey("g", TOPIC, 0)
NOW = Instant(10.0, 1_000)
DONE = StateBatch(Offset(0), Offset(4), RecordState.ACKNOWLEDGED, 1)


def initialized(**settings: str) -> Coordinator:
    coordinator = Coordinator(Context(**settings))
    assert coordinator.ask(InitializeState(KEY, 3, -1), NOW) == Done.DONE
    return coordinator


def write(
    state_epoch: int = 3, leader_epoch: int = 5, start: int = 0, *batches: StateBatch
) -> WriteState:
    return WriteState(KEY, state_epoch, leader_epoch, start, 0, batches)


def code_of(outcome: object) -> ErrorCode:
    assert isinstance(outcome, Refusal)
    return outcome.code


def test_a_state_is_written_and_read() -> None:
    coordinator = initialized()
    read = coordinator.ask(ReadState(KEY, 5), NOW)
    assert isinstance(read, ShareState)
    assert (read.state_epoch, read.start_offset, read.batches) == (3, -1, ())
    assert coordinator.ask(write(3, 5, 2, DONE), NOW) == Done.DONE
    coordinator.restart()
    read = coordinator.ask(ReadState(KEY, 5), NOW)
    assert isinstance(read, ShareState)
    assert read.start_offset == 2
    assert read.batches == (DONE._replace(first=Offset(2)),)
    assert coordinator.ask(ReadSummary(KEY), NOW) == Summary(3, 5, 2, 0)


@pytest.mark.parametrize("command", [InitializeState(KEY, 4, 5), write(), ReadState(KEY, 3)])
def test_what_the_log_does_not_take_concerns_nobody_else(command: object) -> None:
    decision = initialized().machine.decide(command, Ticket(0), NOW)
    assert decision.records
    assert decision.is_pure


def test_a_write_may_leave_the_start_as_it_is() -> None:
    coordinator = initialized()
    coordinator.ask(write(3, 5, 2), NOW)
    coordinator.ask(write(3, -1, -1, DONE), NOW)
    assert coordinator.ask(ReadSummary(KEY), NOW) == Summary(3, 5, 2, 0)


def test_a_write_that_comes_late_moves_nothing_back() -> None:
    coordinator = initialized()
    coordinator.ask(write(3, 5, 8), NOW)
    coordinator.ask(write(3, 5, 2, DONE), NOW)
    read = coordinator.ask(ReadState(KEY), NOW)
    assert isinstance(read, ShareState)
    assert (read.start_offset, read.batches) == (8, ())


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (write(2), ErrorCode.FENCED_STATE_EPOCH),
        (write(3, 4), ErrorCode.FENCED_LEADER_EPOCH),
        (ReadState(KEY, 4), ErrorCode.FENCED_LEADER_EPOCH),
        (InitializeState(KEY, 2, 0), ErrorCode.FENCED_STATE_EPOCH),
        (ReadState(KEY._replace(partition=1)), ErrorCode.INVALID_REQUEST),
        (ReadState(KEY._replace(partition=-1)), ErrorCode.INVALID_REQUEST),
        (DeleteState(KEY._replace(partition=-1)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused(command: object, code: ErrorCode) -> None:
    coordinator = initialized()
    coordinator.ask(ReadState(KEY, 5), NOW)
    count = len(coordinator.log)
    assert code_of(coordinator.ask(command, NOW)) == code
    assert len(coordinator.log) == count


@pytest.mark.parametrize("command", [write(), ReadState(KEY), InitializeState(KEY, 9, 0)])
def test_a_topic_that_is_gone(command: object) -> None:
    coordinator = initialized()
    coordinator.context.is_gone = lambda topic_id, partition: True  # noqa: ARG005
    assert code_of(coordinator.ask(command, NOW)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_state_is_begun_anew() -> None:
    coordinator = initialized()
    coordinator.ask(write(3, 5, 2, DONE), NOW)
    coordinator.ask(InitializeState(KEY, 4, 7), NOW)
    read = coordinator.ask(ReadState(KEY), NOW)
    assert isinstance(read, ShareState)
    assert (read.state_epoch, read.start_offset, read.batches) == (4, 7, ())
    assert code_of(coordinator.ask(write(3), NOW)) == ErrorCode.FENCED_STATE_EPOCH


def test_a_snapshot_after_so_many_updates() -> None:
    coordinator = initialized(share_coordinator_snapshot_update_records_per_snapshot="2")
    for _ in range(6):
        coordinator.ask(write(3, 5, 0, DONE), NOW)
    kinds = [type(decode_record(TYPES, *record)[0]) for record in coordinator.log]  # type: ignore[index]
    snapshot, update = ShareSnapshotKey, ShareUpdateKey
    assert kinds == [snapshot, update, update, snapshot, update, update, snapshot]


def test_deleted_states_are_gone() -> None:
    coordinator = initialized()
    assert coordinator.ask(DeleteState(KEY), NOW) == Done.DONE
    assert coordinator.ask(DeleteState(KEY), NOW) == Done.DONE
    assert len(coordinator.log) == 2
    coordinator.restart()
    assert coordinator.ask(ReadSummary(KEY), NOW) == Summary()
    assert code_of(coordinator.ask(ReadState(KEY), NOW)) == ErrorCode.INVALID_REQUEST


def test_topics_that_are_gone_are_forgotten() -> None:
    coordinator = initialized()
    other = ShareKey("g", TopicId(b"u" * 16), 0)
    coordinator.ask(InitializeState(other, 1, 0), NOW)
    coordinator.ask(ForgetTopicStates({TOPIC}), NOW)
    coordinator.restart()
    assert coordinator.ask(ReadSummary(KEY), NOW) == Summary()
    assert coordinator.ask(ReadSummary(other), NOW) == Summary(1, 0, 0, 0)


def test_what_is_before_the_oldest_snapshot_is_deleted() -> None:
    coordinator = initialized(share_coordinator_snapshot_update_records_per_snapshot="1")
    cold = ShareKey("g", TOPIC, 1)
    coordinator.ask(InitializeState(cold, 1, 0), NOW)
    for _ in range(8):
        coordinator.ask(write(3, 5, 0, DONE), NOW)
    (timer,) = coordinator.machine.loaded(NOW).effects
    assert timer == SetTimer(PruneTimer(), NOW.monotonic + 300)
    later = Instant(400.0, 400_000)
    decision = coordinator.machine.expire(PruneTimer(), later)
    assert decision.effects[0] == DeleteBefore(Offset(1))
    coordinator.record(decision)
    # The one that nobody writes has another snapshot now, and does not hold up the others.
    (delete, _) = coordinator.machine.expire(PruneTimer(), later).effects
    assert isinstance(delete, DeleteBefore)
    assert delete.offset >= 9
    coordinator.log_start = delete.offset
    before = [coordinator.ask(ReadSummary(key), later) for key in (KEY, cold)]
    coordinator.restart()
    assert [coordinator.ask(ReadSummary(key), later) for key in (KEY, cold)] == before
