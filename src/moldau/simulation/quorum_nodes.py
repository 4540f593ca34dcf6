"""Nodes of a simulated quorum, the network between them, and the time that they share."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from moldau.consensus.effects import (
    Answer,
    AnswerFetch,
    AnswerFetchSnapshot,
    AppendBatches,
    EndNode,
    LoadSnapshot,
    MoveLogStart,
    PublishSnapshot,
    QuorumCommitted,
    QuorumEffect,
    QuorumPeer,
    RoleChanged,
    SaveElection,
    SendToPeer,
    Stopped,
    TruncateLog,
    VotersChanged,
    WakeAt,
    WriteSnapshotPiece,
)
from moldau.consensus.events import (
    PeerRequest,
    PeerResponse,
    QuorumEvent,
    RequestFailed,
    SendFailure,
    SnapshotWritten,
    Start,
    Synced,
    Tick,
)
from moldau.consensus.member import QuorumMember
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import ReplicaKey, Voter, VoterListener, Voters
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest
from moldau.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.simulation.laws.quorum import QuorumLaws, Seat
from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.quorum_log import MemoryQuorumLog, snapshot_bytes

LISTENER = "CONTROLLER"
CLUSTER_ID = "simulated"
VERSIONS: Mapping[type[Message], int] = {
    FetchRequest: 18,
    FetchSnapshotRequest: 1,
    VoteRequest: 2,
    BeginQuorumEpochRequest: 1,
    EndQuorumEpochRequest: 1,
    AddRaftVoterRequest: 1,
    RemoveRaftVoterRequest: 0,
    UpdateRaftVoterRequest: 0,
}


@dataclass(frozen=True, slots=True)
class QuorumFaults:
    """What goes wrong in a run, and how often: seconds between two, or a share of messages."""

    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    cut_every: float = math.inf
    crash_every: float = math.inf
    stop_every: float = math.inf
    wipe_every: float = math.inf
    voters_every: float = math.inf
    resign_every: float = math.inf
    stall: float = 0.0
    """Share of syncs that take a second and more."""
    snapshot_every: float = math.inf
    propose_every: float = 0.5
    drift: float = 0.0


@dataclass(frozen=True, slots=True)
class QuorumShape:
    """A quorum to simulate."""

    voters: int = 3
    observers: int = 1
    kraft_version: int = 1
    doubts: bool = False
    old_node: int | None = None
    """A node that knows no pre-votes."""
    faults: QuorumFaults = field(default_factory=QuorumFaults)


class SimulatedNode:
    """A node: a disk that outlives it, and a member while it runs."""

    def __init__(
        self, cluster: "QuorumWorld", node_id: int, directory: bytes, log: MemoryQuorumLog
    ) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.directory = directory
        self.log = log
        self.member: QuorumMember | None = None
        self.incarnation = 0
        self.drift = cluster.random.uniform(-1, 1) * cluster.shape.faults.drift
        self.applied = Offset(0)
        self.digest = 0
        self.is_syncing = False
        self.timer_at = math.inf
        self.is_old = node_id == cluster.shape.old_node
        self.followed: dict[int, float] = {}
        """When other nodes last asked something of this one."""
        self.voters_since = 0.0

    @property
    def key(self) -> ReplicaKey:
        """The node with its disk."""
        return ReplicaKey(self.node_id, self.directory)

    @property
    def seat(self) -> Seat:
        """The node, its disk and its process."""
        return Seat(self.key, self.incarnation)

    @property
    def voter(self) -> Voter:
        """The node as a voter."""
        return Voter(self.node_id, self.directory, (listener_of(self.node_id),))

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.member is not None

    def now(self) -> Instant:
        """The time of its clock."""
        time = self.cluster.time * (1 + self.drift)
        return Instant(time, int(time * 1000))

    def start(self) -> None:
        """Start the process on what the disk has."""
        cluster = self.cluster
        static = cluster.static_voters
        history = self.log.load_history(static)
        settings = QuorumSettings(
            CLUSTER_ID,
            LISTENER,
            cluster.bootstrap,
            auto_join=cluster.shape.kraft_version == 1 and self.node_id <= cluster.shape.voters,
            fetch_bytes_max=200,
            doubts_refusing_leader=cluster.shape.doubts,
        )
        self.incarnation += 1
        self.is_syncing = False
        self.followed = {}
        self.applied, self.digest = Offset(0), 0
        if (latest := self.log.latest_snapshot) is not None:
            self.load(latest)
        self.member = QuorumMember(
            self.voter, settings, history, self.log, self.log.election, cluster.random.random
        )
        self.handle(Start())
        if self.log.synced_end < self.log.end_offset:
            self.sync()

    def load(self, snapshot_id: SnapshotId) -> None:
        """Take the image of a snapshot."""
        laws = self.cluster.laws
        self.digest = laws.loaded(self.seat, snapshot_id, self.log.snapshots[snapshot_id])
        self.applied = snapshot_id.end_offset

    def crash(self) -> None:
        """End the process, and lose some of what was not synced."""
        self.member = None
        self.log.crash(self.cluster.random.randrange)

    def handle(self, event: QuorumEvent) -> None:
        """Have the member take in an event, and perform what it wants."""
        member = self.member
        if member is None:
            return
        incarnation = self.incarnation
        for effect in member.handle(event, self.now()):
            self._perform(effect, member)
            if self.incarnation != incarnation or not self.is_running:
                return

    def _perform(  # noqa: C901, PLR0912 - an effect each
        self, effect: QuorumEffect, member: QuorumMember
    ) -> None:
        cluster, laws, log = self.cluster, self.cluster.laws, self.log
        match effect:
            case WakeAt(at):
                self.timer_at = at
                cluster.later(
                    max(at / (1 + self.drift) - cluster.time, 0) + 1e-6,
                    self._tick,
                    self.incarnation,
                    at,
                )
            case SendToPeer() | Answer() | AnswerFetch() | AnswerFetchSnapshot():
                laws.told(self.seat, effect, member, log)
                self._tell(effect)
            case SaveElection(election):
                laws.saved(self.seat, log.election, election)
                log.election = election
            case AppendBatches(data):
                laws.appended(self.seat, log.append(data))
                laws.check_change(self.seat, member, log)
                self.sync()
            case TruncateLog(to):
                laws.truncated(self.seat, to, log.truncate(to), member.high_watermark)
                laws.check_voters(self.seat, member, log)
            case QuorumCommitted(high_watermark):
                laws.committed_by(self.seat, high_watermark, member, cluster.disks)
                self._apply(high_watermark)
            case VotersChanged():
                self.voters_since = cluster.time
            case RoleChanged():
                laws.changed_role(self.seat, effect, member, log)
                self.followed = {}
            case WriteSnapshotPiece(snapshot_id, position, data):
                log.write_piece(snapshot_id, position, data)
            case PublishSnapshot(snapshot_id):
                laws.counts["snapshots fetched"] += 1
                log.publish(snapshot_id)
            case LoadSnapshot(snapshot_id):
                self.load(snapshot_id)
                laws.check_voters(self.seat, member, log)
            case MoveLogStart(to):
                self._move_start(to)
            case Stopped():
                laws.counts["stopped"] += 1
                self.crash()
                cluster.later(cluster.random.uniform(0.1, 5), cluster.restart, self)
            case EndNode(reason):
                raise LawViolation("no node has to end", f"{self.seat}: {reason}")
            case _:
                pass

    def _tell(self, effect: SendToPeer | Answer | AnswerFetch | AnswerFetchSnapshot) -> None:
        cluster, log = self.cluster, self.log
        match effect:
            case SendToPeer():
                cluster.network.request(self, effect)
            case Answer(token, message):
                cluster.network.answer(self, token, message)
            case AnswerFetch(token, fetched, start, bytes_max):
                fetched.responses[0].partitions[0].records = log.read(start, bytes_max)
                cluster.network.answer(self, token, fetched)
            case AnswerFetchSnapshot(token, piece, snapshot_id, position, bytes_max):
                data = log.snapshots[snapshot_id][position : position + bytes_max]
                piece.topics[0].partitions[0].unaligned_records = data
                cluster.network.answer(self, token, piece)

    def _tick(self, incarnation: int, at: float) -> None:
        if (self.incarnation, self.timer_at) == (incarnation, at):
            self.handle(Tick())

    def _apply(self, high_watermark: Offset) -> None:
        if high_watermark < self.applied:
            raise LawViolation(
                "the high watermark never falls", f"{self.seat}: {high_watermark} < {self.applied}"
            )
        if high_watermark > self.applied:
            for batch in self.log.between(self.applied, high_watermark):
                self.digest = self.cluster.laws.applied(self.seat, batch, self.digest)
            self.applied = high_watermark

    # The disk.

    def sync(self) -> None:
        """Have what is written made durable, soon."""
        if self.is_syncing:
            return
        self.is_syncing = True
        cluster = self.cluster
        delay = cluster.random.uniform(0.0001, 0.005)
        if cluster.random.random() < cluster.shape.faults.stall:
            delay = cluster.random.uniform(0.5, 4)
        self.log.begin_sync()
        cluster.later(delay, self._synced, self.incarnation)

    def _synced(self, incarnation: int) -> None:
        if self.incarnation != incarnation or self.member is None:
            return
        self.is_syncing = False
        self.handle(Synced(self.log.end_sync()))
        if self.is_running and self.log.synced_end < self.log.end_offset:
            self.sync()

    def snapshot(self) -> None:
        """Write a snapshot of what is applied."""
        member = self.member
        latest = self.log.latest_snapshot
        if member is None or member.high_watermark is None or self.applied == 0:
            return
        if latest is not None and self.applied <= latest.end_offset:
            return
        snapshot_id = SnapshotId(self.applied, self.log.epoch_at(self.applied))
        data = snapshot_bytes(snapshot_id, member.voters_at(self.applied), self.digest)
        self.log.keep_snapshot(snapshot_id, data)
        self.cluster.laws.counts["snapshots"] += 1
        self.handle(SnapshotWritten(self.applied))

    def _move_start(self, to: Offset) -> None:
        [snapshot_id] = [each for each in self.log.snapshots if each.end_offset == to]
        # What is above the synced end is no history yet.
        if snapshot_id.end_offset <= self.log.synced_end:
            self.log.move_start(snapshot_id)


def listener_of(node_id: int) -> VoterListener:
    """Return where a node listens."""
    return VoterListener(LISTENER, f"n{node_id}", 9093)


class SimulatedNetwork:
    """Carries requests and answers; loses, doubles, delays, reorders, and cuts one way."""

    def __init__(self, cluster: "QuorumWorld") -> None:
        self._cluster = cluster
        self.cuts: set[tuple[int, int]] = set()

    def _carry(self, source: int, target: int, deliver: Callable[..., None], *what: Any) -> None:
        cluster, random = self._cluster, self._cluster.random
        faults = cluster.faults
        if (source, target) in self.cuts or random.random() < faults.lost:
            return
        copies = 2 if random.random() < faults.doubled else 1
        for _ in range(copies):
            delay = random.uniform(0.0002, 0.002)
            if random.random() < faults.slow:
                delay = random.expovariate(1 / 0.5)
            cluster.later(delay, deliver, *what)

    def request(self, node: SimulatedNode, send: SendToPeer) -> None:
        """Carry a request to where it is addressed."""
        target = int(send.peer.host[1:])
        self._carry(node.node_id, target, self._deliver, node, node.incarnation, send, target)

    def _deliver(
        self, source: SimulatedNode, incarnation: int, send: SendToPeer, target: int
    ) -> None:
        node = self._cluster.nodes[target]
        back = (source, incarnation, send.request_id, node)
        message = send.message
        if node.member is None:
            self._fail(back, SendFailure.REFUSED)
        elif isinstance(message, ApiVersionsRequest):
            level = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            self._respond(back, ApiVersionsResponse(supported_features=[level]))
        elif node.is_old and _is_pre_vote(message):
            self._fail(back, SendFailure.UNSUPPORTED_VERSION)
        else:
            node.followed[source.node_id] = self._cluster.time
            version = VERSIONS[type(message)]
            node.handle(PeerRequest(back, message, version, LISTENER))

    def _fail(self, back: Any, failure: SendFailure) -> None:
        source, incarnation, request_id, node = back
        self._carry(
            node.node_id,
            source.node_id,
            self._arrive,
            source,
            incarnation,
            RequestFailed(request_id, failure),
        )

    def _respond(self, back: Any, message: Message) -> None:
        source, incarnation, request_id, node = back
        response = PeerResponse(request_id, message)
        self._carry(node.node_id, source.node_id, self._arrive, source, incarnation, response)

    def _arrive(self, node: SimulatedNode, incarnation: int, event: QuorumEvent) -> None:
        if node.incarnation == incarnation:
            node.handle(event)

    def answer(self, _node: SimulatedNode, token: Any, message: Message) -> None:
        """Carry an answer back; the operator's go nowhere."""
        if token is not None:
            self._respond(token, message)


def _is_pre_vote(message: Message) -> bool:
    return isinstance(message, VoteRequest) and message.topics[0].partitions[0].pre_vote


class QuorumWorld:
    """Time, chance and what all nodes share; everything follows from the seed."""

    def __init__(self, seed: int, shape: QuorumShape) -> None:
        self.random = Random(seed)
        self.shape = shape
        self.faults = shape.faults
        self.time = 0.0
        self.laws = QuorumLaws()
        self.network = SimulatedNetwork(self)
        self.events = 0
        self.bootstrap = tuple(
            QuorumPeer(-2 - at, f"n{at + 1}", 9093) for at in range(shape.voters + shape.observers)
        )
        self.static_voters: Voters = ()
        self.nodes: dict[int, SimulatedNode] = {}
        self.disks: dict[ReplicaKey, MemoryQuorumLog] = {}
        """Of all replicas, also of those that are lost."""
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0

    def later(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        """Have something happen."""
        self._sequence += 1
        heappush(self._heap, (self.time + delay, self._sequence, action, arguments))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.time + seconds
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.time, _, action, arguments = heappop(heap)
            self.events += 1
            action(*arguments)
        self.time = until

    def restart(self, node: SimulatedNode) -> None:
        """Start a node that does not run."""
        if node.member is None:
            node.start()
