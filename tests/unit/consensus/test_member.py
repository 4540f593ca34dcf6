from dataclasses import replace

import pytest

from moldau._native.records import read_batches
from moldau.consensus.effects import (
    AppendBatches,
    LeaderChanged,
    MoveLogStart,
    ProposalRefused,
    QuorumCommitted,
    QuorumEffect,
    RoleChanged,
    SaveElection,
    Stopped,
    VotersChanged,
)
from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.events import (
    Propose,
    QuorumEvent,
    SnapshotWritten,
    Start,
    Stop,
    StorageFailed,
    Synced,
    UpgradeKraftVersion,
)
from moldau.consensus.member import QuorumMember
from moldau.consensus.quorum_state import Election
from moldau.consensus.roles import Leader, Resigned
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import Voter, VoterHistory, VoterListener, voters_record
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.protocol.stored.control_records import KRaftVersionRecord, VotersRecord
from moldau.records.batch import read_records
from moldau.records.control import ControlType, build_quorum_batch, read_control_record
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted

NOW = Instant(monotonic=5.0, wall_ms=1_700_000_000_000)
LOCAL = Voter(1, bytes(range(16)), (VoterListener("CONTROLLER", "localhost", 9093),))
SETTINGS = QuorumSettings("cluster")


def member_of(
    log: MemoryQuorumLog, local: Voter = LOCAL, history: VoterHistory | None = None
) -> QuorumMember:
    history = log.load_history(()) if history is None else history
    return QuorumMember(local, SETTINGS, history, log, log.election, lambda: 0.5)


def perform(log: MemoryQuorumLog, effects: list[QuorumEffect]) -> None:
    for effect in effects:
        match effect:
            case SaveElection(election):
                log.election = election
            case AppendBatches(data, base_offset, end_offset):
                assert base_offset == log.end_offset
                log.append(data)
                assert end_offset == log.end_offset
            case _:
                pass


def started(log: MemoryQuorumLog, local: Voter = LOCAL) -> QuorumMember:
    member = member_of(log, local)
    perform(log, member.handle(Start(), NOW))
    return member


def synced(member: QuorumMember, log: MemoryQuorumLog, end: int) -> list[QuorumEffect]:
    log.synced_end = Offset(end)
    return member.handle(Synced(Offset(end)), NOW)


def told(effects: list[QuorumEffect]) -> list[QuorumEffect]:
    """Leave out what is for logs and metrics alone."""
    return [each for each in effects if not isinstance(each, RoleChanged | VotersChanged)]


def control_types(data: bytes) -> list[int]:
    [batch] = read_batches(data)
    assert batch.is_control
    return [read_control_record(record).type for record in read_records(data, batch)]


def test_the_first_start() -> None:
    log = formatted((LOCAL,))
    member = member_of(log)
    effects = told(member.handle(Start(), NOW))
    saved, changed, appended = effects
    assert saved == SaveElection(Election(1, leader_id=1))
    assert changed == LeaderChanged(1, LeaderEpoch(1))
    assert isinstance(appended, AppendBatches)
    # As Kafka: the voters were only in a snapshot so far.
    assert control_types(bytes(appended.data)) == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    assert isinstance(member.role, Leader)
    assert member.high_watermark is None
    perform(log, effects)
    assert synced(member, log, 3) == [QuorumCommitted(Offset(3))]
    assert synced(member, log, 3) == []


def test_the_next_start_has_a_new_epoch() -> None:
    log = formatted((LOCAL,))
    started(log)
    member = started(log)
    assert isinstance(member.role, Leader)
    assert (member.role.epoch, member.role.epoch_start) == (2, 3)
    assert control_types(log.batches[-1].data) == [ControlType.LEADER_CHANGE]
    # Nothing of its own epoch is on disk yet.
    assert synced(member, log, 3) == []
    assert synced(member, log, 4) == [QuorumCommitted(Offset(4))]


@pytest.mark.parametrize(("saved", "written", "epoch"), [(7, 3, 8), (3, 7, 8), (None, 7, 8)])
def test_the_epoch_is_beyond_all_that_was_seen(saved: int | None, written: int, epoch: int) -> None:
    log = formatted((LOCAL,))
    values = [KRaftVersionRecord(kraft_version=1)]
    log.append(build_quorum_batch(values, timestamp=0, base_offset=0, leader_epoch=written))
    log.election = None if saved is None else Election(saved)
    assert started(log).role.epoch == epoch


def test_a_new_address_is_written() -> None:
    log = formatted((LOCAL,))
    started(log)
    moved = replace(LOCAL, listeners=(VoterListener("CONTROLLER", "localhost", 9999),))
    member = started(log, moved)
    assert control_types(log.batches[-1].data)[-1] == ControlType.KRAFT_VOTERS
    assert member.voters == (moved,)
    assert log.load_history(()).voters == (moved,)


def test_proposals() -> None:
    log = formatted((LOCAL,))
    member = started(log)
    [appended] = member.handle(Propose([b"one", b"two"]), NOW)
    assert isinstance(appended, AppendBatches)
    assert (appended.base_offset, appended.end_offset) == (3, 5)
    [batch] = read_batches(appended.data)
    assert (batch.leader_epoch, batch.is_control) == (1, False)
    records = read_records(appended.data, batch)
    assert [(each.key, each.value, each.timestamp) for each in records] == [
        (None, b"one", NOW.wall_ms),
        (None, b"two", NOW.wall_ms),
    ]


def test_snapshots_move_the_start_of_the_log() -> None:
    log = formatted((LOCAL,))
    member = started(log)
    with pytest.raises(AssertionError, match="committed"):
        member.handle(SnapshotWritten(Offset(3)), NOW)
    synced(member, log, 3)
    assert member.handle(SnapshotWritten(Offset(2)), NOW) == [MoveLogStart(Offset(2))]
    with pytest.raises(AssertionError, match="committed"):
        member.handle(SnapshotWritten(Offset(4)), NOW)


@pytest.mark.parametrize(("end", "last"), [(Stop(), [Stopped()]), (StorageFailed(), [])])
def test_a_leader_resigns_for_good(end: QuorumEvent, last: list[QuorumEffect]) -> None:
    log = formatted((LOCAL,))
    member = started(log)
    assert told(member.handle(end, NOW)) == [LeaderChanged(None, LeaderEpoch(1)), *last]
    assert isinstance(member.role, Resigned)
    assert member.handle(Propose([b"x"]), NOW) == [ProposalRefused()]
    assert member.handle(UpgradeKraftVersion(), NOW) == [ProposalRefused()]
    for event in (Synced(Offset(3)), SnapshotWritten(Offset(0)), Stop(), StorageFailed()):
        assert member.handle(event, NOW) == []
    with pytest.raises(AssertionError):
        member.handle(Start(), NOW)


def test_before_the_start_nothing_is_taken() -> None:
    member = member_of(formatted((LOCAL,)))
    assert member.handle(Propose([b"x"]), NOW) == [ProposalRefused()]


def test_voters_from_the_settings_are_written_when_asked_for() -> None:
    log = MemoryQuorumLog()
    member = member_of(log, history=VoterHistory((replace(LOCAL, directory_id=bytes(16)),)))
    perform(log, member.handle(Start(), NOW))
    assert member.kraft_version == 0
    assert control_types(log.batches[0].data) == [ControlType.LEADER_CHANGE]
    effects = told(member.handle(UpgradeKraftVersion(), NOW))
    # Saved again, because its format goes by the version.
    assert [type(effect) for effect in effects] == [SaveElection, AppendBatches]
    assert isinstance(effects[1], AppendBatches)
    assert control_types(bytes(effects[1].data)) == [
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    perform(log, effects)
    assert member.kraft_version == 1
    assert member.voters == (LOCAL,)
    assert member.handle(UpgradeKraftVersion(), NOW) == []


def test_a_release_of_the_future() -> None:
    log = formatted((LOCAL,))
    history = log.load_history(())
    history.replay(KRaftVersionRecord(kraft_version=2), 5)
    with pytest.raises(UnsupportedQuorumError, match=r"kraft\.version is 2"):
        member_of(log, history=history)


def test_voters_as_records() -> None:
    record = voters_record((LOCAL,))
    assert isinstance(record, VotersRecord)
    history = VoterHistory()
    history.replay(record, 7)
    assert (history.voters, history.offset) == ((LOCAL,), 7)
