"""A member's role, and what it remembers in it."""

import math
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.consensus.effects import QuorumPeer
from moldau.consensus.quorum import Ballots, CheckQuorum
from moldau.consensus.quorum_state import Vote
from moldau.consensus.voters import ReplicaKey, VoterListener
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.schema import ZERO_UUID

Endpoints: TypeAlias = tuple[VoterListener, ...]


@dataclass(slots=True)
class Unattached:
    """Knows no leader, or at least not where it is; looks for one."""

    epoch: LeaderEpoch
    election_at: float
    leader_id: int | None = None
    vote: Vote | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected, without an epoch of its own (KIP-996)."""

    epoch: LeaderEpoch
    ballots: Ballots
    election_at: float
    leader_id: int | None = None
    endpoints: Endpoints = ()
    vote: Vote | None = None


@dataclass(slots=True)
class Candidate:
    """Voted for itself in a new epoch, and asks for the votes of the others."""

    epoch: LeaderEpoch
    ballots: Ballots
    election_at: float


@dataclass(slots=True)
class Progress:
    """How far a replica has come, as its fetches say."""

    end: Offset | None = None
    """Everything below is on its disk; a voter's may go back (KAFKA-12181)."""
    fetched: Instant | None = None
    caught_up: Instant | None = None
    leader_end: Offset | None = None
    """Of the log at its last fetch."""

    def note_fetch(self, offset: Offset, leader_end: Offset, now: Instant) -> None:
        """Take in a fetch."""
        if offset >= leader_end:
            self.caught_up = now
        elif self.leader_end is not None and self.leader_end <= offset:
            self.caught_up = self.fetched
        self.leader_end = leader_end
        self.fetched = now
        self.end = offset


@dataclass(slots=True)
class Leader:
    """Appends; commits what a majority has on disk, once that reaches into its own epoch."""

    epoch: LeaderEpoch
    epoch_start: Offset
    check_quorum: CheckQuorum
    announce_at: float
    """When to tell the voters that do not fetch that it leads."""
    high_watermark: Offset | None = None
    """Unknown until a majority stores a record of this epoch."""
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    """Of voters and observers; one that is silent is forgotten, unless it votes."""


@dataclass(slots=True)
class Resigned:
    """Led its epoch, and never will again in this one; tells the voters."""

    epoch: LeaderEpoch
    election_at: float
    successors: tuple[ReplicaKey, ...] = ()
    """Which of the voters might go first."""
    untold: set[int] = field(default_factory=set)


@dataclass(slots=True)
class FetchingSnapshot:
    """A snapshot of the leader on its way here."""

    id: SnapshotId
    position: int = 0
    head: bytearray = field(default_factory=bytearray)
    """Its first bytes, which have the voters."""


@dataclass(slots=True)
class Follower:
    """Fetches from the leader, whose address is known."""

    epoch: LeaderEpoch
    leader_id: int
    endpoints: Endpoints
    fetch_by: float
    """Without a good answer until then, a voter doubts that there is a leader."""
    vote: Vote | None = None
    has_fetched: bool = False
    may_doubt: bool = True
    """Whether a refused connection is reason enough: once, until the leader answers again."""
    snapshot: FetchingSnapshot | None = None
    update_voter_at: float = math.inf
    has_updated_leader: bool = False

    def peer(self, listener: str) -> QuorumPeer:
        """Where the leader listens for this node."""
        for each in self.endpoints:
            if each.name == listener:
                return QuorumPeer(self.leader_id, each.host, each.port)
        first = self.endpoints[0]
        return QuorumPeer(self.leader_id, first.host, first.port)


Role: TypeAlias = Unattached | Prospective | Candidate | Leader | Resigned | Follower


def find_leader_id(role: Role, local_id: int) -> int | None:
    """Return which node leads in the role's epoch, as far as it is known here.

    A resigned leader still counts as its epoch's: no other can be.
    """
    match role:
        case Leader() | Resigned():
            return local_id
        case Candidate():
            return None
        case _:
            return role.leader_id


def vote_of(role: Role, local: ReplicaKey) -> Vote | None:
    """Return for which replica this one voted in the role's epoch, as the disk has it."""
    match role:
        case Leader() | Resigned():  # that it led says enough
            return None
        case Candidate():
            return Vote(local.node_id, local.directory_id)
        case _:
            return role.vote


def is_vote_for(vote: Vote, key: ReplicaKey) -> bool:
    """Say whether a vote went to this replica; a directory unknown then stands for any."""
    return vote.node_id == key.node_id and vote.directory_id in (ZERO_UUID, key.directory_id)
