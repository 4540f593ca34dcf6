from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau._native.records import read_batches
from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.events import (
    AppendBatch,
    LeaderChanged,
    MoveLogStart,
    ProposalRefused,
    Propose,
    QuorumCommitted,
    QuorumEffect,
    QuorumEvent,
    SaveElection,
    SnapshotWritten,
    Start,
    Stop,
    StorageFailed,
    Synced,
    UpgradeKraftVersion,
)
from moldau.consensus.member import Leader, QuorumMember, Resigned
from moldau.consensus.quorum_state import Election
from moldau.consensus.voters import IN_SNAPSHOT, Voter, VoterHistory, VoterListener, voters_record
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.protocol.stored.control_records import KRaftVersionRecord, VotersRecord
from moldau.records.batch import read_records
from moldau.records.control import ControlType, read_control_record

NOW = Instant(monotonic=5.0, wall_ms=1_700_000_000_000)
LOCAL = Voter(1, bytes(range(16)), (VoterListener("CONTROLLER", "localhost", 9093),))


@dataclass
class MemoryLog:
    """A log and an election file that a crash cuts back to what was synced."""

    batches: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    synced: int = 0
    election: Election | None = None

    @property
    def end_offset(self) -> Offset:
        return Offset(self.batches[-1][1] if self.batches else 0)

    @property
    def last_epoch(self) -> LeaderEpoch:
        return LeaderEpoch(self.batches[-1][2] if self.batches else 0)

    def perform(self, effects: list[QuorumEffect]) -> None:
        for effect in effects:
            match effect:
                case SaveElection(election):
                    assert self.election is None or election.epoch >= self.election.epoch
                    self.election = election
                case AppendBatch(data, base_offset, end_offset):
                    [batch] = read_batches(data)
                    assert base_offset == self.end_offset == batch.base_offset
                    assert end_offset == batch.last_offset + 1
                    assert batch.leader_epoch >= self.last_epoch
                    self.batches.append((base_offset, end_offset, batch.leader_epoch, data))

    def crash(self) -> None:
        self.batches = [batch for batch in self.batches if batch[1] <= self.synced]

    def history(self) -> VoterHistory:
        """Load the voters, as from a formatted directory."""
        history = VoterHistory()
        history.replay(KRaftVersionRecord(kraft_version=1), IN_SNAPSHOT)
        history.replay(voters_record((LOCAL,)), IN_SNAPSHOT)
        for *_, data in self.batches:
            [batch] = read_batches(data)
            if batch.is_control:
                for record in read_records(data, batch):
                    value = read_control_record(record).value
                    assert value is not None
                    history.replay(value, record.offset)  # type: ignore[arg-type]
        return history


def started(log: MemoryLog, local: Voter = LOCAL) -> QuorumMember:
    member = QuorumMember(local, log.history(), log, log.election)
    log.perform(member.handle(Start(), NOW))
    return member


def control_types(data: bytes) -> list[int]:
    [batch] = read_batches(data)
    assert batch.is_control
    return [read_control_record(record).type for record in read_records(data, batch)]


def test_the_first_start() -> None:
    log = MemoryLog()
    member = QuorumMember(LOCAL, log.history(), log, None)
    effects = member.handle(Start(), NOW)
    saved, changed, appended = effects
    assert saved == SaveElection(Election(1, leader_id=1))
    assert changed == LeaderChanged(1, LeaderEpoch(1))
    assert isinstance(appended, AppendBatch)
    # As Kafka: the voters were only in a snapshot so far.
    assert control_types(appended.data) == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    assert member.role == Leader(LeaderEpoch(1), Offset(0))
    assert member.high_watermark is None
    log.perform(effects)
    assert member.handle(Synced(Offset(3)), NOW) == [QuorumCommitted(Offset(3))]
    assert member.handle(Synced(Offset(3)), NOW) == []
    assert member.handle(Synced(Offset(2)), NOW) == []


def test_the_next_start_has_a_new_epoch() -> None:
    log = MemoryLog()
    started(log)
    member = started(log)
    assert member.role == Leader(LeaderEpoch(2), Offset(3))
    assert control_types(log.batches[-1][3]) == [ControlType.LEADER_CHANGE]
    # Nothing of its own epoch is on disk yet.
    assert member.handle(Synced(Offset(3)), NOW) == []
    assert member.handle(Synced(Offset(4)), NOW) == [QuorumCommitted(Offset(4))]


@pytest.mark.parametrize(("saved", "written", "epoch"), [(7, 3, 8), (3, 7, 8), (None, 7, 8)])
def test_the_epoch_is_beyond_all_that_was_seen(saved: int | None, written: int, epoch: int) -> None:
    log = MemoryLog([(0, 1, written, b"")], election=None if saved is None else Election(saved))
    member = QuorumMember(LOCAL, MemoryLog().history(), log, log.election)
    member.handle(Start(), NOW)
    assert member.role == Leader(LeaderEpoch(epoch), Offset(1))


def test_a_new_address_is_written() -> None:
    log = MemoryLog()
    started(log)
    moved = replace(LOCAL, listeners=(VoterListener("CONTROLLER", "localhost", 9999),))
    member = started(log, moved)
    assert control_types(log.batches[-1][3])[-1] == ControlType.KRAFT_VOTERS
    assert member.voter == moved
    assert log.history().voters == (moved,)


def test_proposals() -> None:
    log = MemoryLog()
    member = started(log)
    [appended] = member.handle(Propose([b"one", b"two"]), NOW)
    assert isinstance(appended, AppendBatch)
    assert (appended.base_offset, appended.end_offset) == (3, 5)
    [batch] = read_batches(appended.data)
    assert (batch.leader_epoch, batch.is_control) == (1, False)
    records = read_records(appended.data, batch)
    assert [(each.key, each.value, each.timestamp) for each in records] == [
        (None, b"one", NOW.wall_ms),
        (None, b"two", NOW.wall_ms),
    ]


def test_snapshots_move_the_start_of_the_log() -> None:
    log = MemoryLog()
    member = started(log)
    with pytest.raises(AssertionError, match="committed"):
        member.handle(SnapshotWritten(Offset(3)), NOW)
    member.handle(Synced(Offset(3)), NOW)
    assert member.handle(SnapshotWritten(Offset(2)), NOW) == [MoveLogStart(Offset(2))]
    with pytest.raises(AssertionError, match="committed"):
        member.handle(SnapshotWritten(Offset(4)), NOW)


@pytest.mark.parametrize("end", [Stop(), StorageFailed()])
def test_a_leader_resigns_for_good(end: QuorumEvent) -> None:
    log = MemoryLog()
    member = started(log)
    assert member.handle(end, NOW) == [LeaderChanged(None, LeaderEpoch(1))]
    assert member.role == Resigned(LeaderEpoch(1))
    assert member.handle(Propose([b"x"]), NOW) == [ProposalRefused()]
    assert member.handle(UpgradeKraftVersion(), NOW) == [ProposalRefused()]
    for event in (Synced(Offset(3)), SnapshotWritten(Offset(0)), Stop(), StorageFailed()):
        assert member.handle(event, NOW) == []
    with pytest.raises(AssertionError):
        member.handle(Start(), NOW)


def test_before_the_start_nothing_is_taken() -> None:
    log = MemoryLog()
    member = QuorumMember(LOCAL, log.history(), log, None)
    assert member.handle(Propose([b"x"]), NOW) == [ProposalRefused()]
    assert member.handle(Stop(), NOW) == []


def test_voters_from_the_settings_are_written_when_asked_for() -> None:
    log = MemoryLog()
    static = VoterHistory((Voter(1, bytes(16), LOCAL.listeners),))
    member = QuorumMember(LOCAL, static, log, None)
    log.perform(member.handle(Start(), NOW))
    assert member.kraft_version == 0
    assert control_types(log.batches[0][3]) == [ControlType.LEADER_CHANGE]
    effects = member.handle(UpgradeKraftVersion(), NOW)
    assert [type(effect) for effect in effects] == [AppendBatch, SaveElection]
    assert isinstance(effects[0], AppendBatch)
    assert control_types(effects[0].data) == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert member.kraft_version == 1
    assert member.handle(UpgradeKraftVersion(), NOW) == []


def test_quorums_that_are_not_ours() -> None:
    log = MemoryLog()
    other = replace(LOCAL, node_id=2)
    wiped = replace(LOCAL, directory_id=bytes(16))
    for voters in ((LOCAL, other), (other,), (wiped,), ()):
        history = VoterHistory()
        history.replay(voters_record(voters), IN_SNAPSHOT)
        with pytest.raises(UnsupportedQuorumError) as caught:
            QuorumMember(LOCAL, history, log, None)
        assert "\n" not in str(caught.value)
    history = log.history()
    history.replay(KRaftVersionRecord(kraft_version=2), 5)
    with pytest.raises(UnsupportedQuorumError, match=r"kraft\.version is 2"):
        QuorumMember(LOCAL, history, log, None)


def test_voters_as_records() -> None:
    record = voters_record((LOCAL,))
    assert isinstance(record, VotersRecord)
    history = VoterHistory()
    history.replay(record, 7)
    assert (history.voters, history.offset) == ((LOCAL,), 7)


class Life(RuleBasedStateMachine):
    """A voter that is started, proposes, syncs, crashes and starts again, in any order."""

    @initialize()
    def begin(self) -> None:
        self.log = MemoryLog()
        self.committed = 0
        self.names: dict[tuple[int, int], bytes] = {}
        self.leaders: set[int] = set()
        self.start()

    def start(self) -> None:
        self.member = started(self.log)
        epoch = self.member.role.epoch
        assert epoch not in self.leaders, "one leader per epoch, also of one node"
        self.leaders.add(epoch)

    def handle(self, event: QuorumEvent) -> None:
        effects = self.member.handle(event, NOW)
        self.log.perform(effects)
        for effect in effects:
            if isinstance(effect, QuorumCommitted):
                assert effect.high_watermark > self.committed
                assert effect.high_watermark <= self.log.synced
                self.committed = effect.high_watermark

    @rule(count=st.integers(1, 3), value=st.binary(max_size=3))
    def propose(self, count: int, value: bytes) -> None:
        self.handle(Propose([value] * count))

    @rule(share=st.floats(0, 1))
    def sync(self, share: float) -> None:
        ends = [end for _, end, _, _ in self.log.batches]
        self.log.synced = max(self.log.synced, ends[int(share * (len(ends) - 1))])
        self.handle(Synced(Offset(self.log.synced)))

    @rule(crashes=st.booleans())
    def restart(self, crashes: bool) -> None:
        if crashes:
            self.log.crash()
        else:
            self.handle(Stop())
            self.log.synced = self.log.end_offset
        self.start()

    @invariant()
    def one_record_per_offset_and_epoch(self) -> None:
        for base_offset, _, epoch, data in self.log.batches:
            assert self.names.setdefault((base_offset, epoch), data) == data

    @invariant()
    def what_is_committed_stays(self) -> None:
        assert self.log.end_offset >= self.committed


Life.TestCase.settings = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLife = Life.TestCase
