"""A quorum simulated: bare members over logs in memory, a bad network, crashes, lost disks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    Peer,
    PublishSnapshot,
    QuorumCommitted,
    QuorumEffect,
    RoleChanged,
    SaveElection,
    Send,
    SetTimer,
    Stopped,
    TruncateLog,
    WriteSnapshotPiece,
)
from moldau.consensus.events import (
    Failure,
    PeerRequest,
    PeerResponse,
    Propose,
    QuorumEvent,
    RequestFailed,
    Resign,
    SnapshotWritten,
    Start,
    Stop,
    Synced,
    Tick,
    UpgradeKraftVersion,
)
from moldau.consensus.member import QuorumMember
from moldau.consensus.roles import Leader
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import ReplicaKey, Voter, VoterListener, Voters, forget_directories
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from moldau.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.records.snapshot_id import SnapshotId
from moldau.simulation.laws.quorum import QuorumLaws, Seat
from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted, snapshot_bytes

LISTENER = "CONTROLLER"
CLUSTER_ID = "simulated"
STALE_LEADER_SECONDS = 8.0
"""Longer than any leader may go on whose voters do not fetch: twice check-quorum, and drift."""
HEAL_SECONDS = 60.0
"""How long a healed quorum may take to elect a leader and commit."""


@dataclass(frozen=True, slots=True)
class Faults:
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
class Shape:
    """A quorum to simulate."""

    voters: int = 3
    observers: int = 1
    kraft_version: int = 1
    doubts: bool = False
    old_node: int | None = None
    """A node that knows no pre-votes."""
    faults: Faults = field(default_factory=Faults)


def swarm(random: Random, shape: Shape) -> Shape:
    """Return the shape with a random subset of all faults."""

    def maybe(value: float, otherwise: float) -> float:
        return value * random.uniform(0.5, 2) if random.random() < 0.6 else otherwise

    faults = Faults(
        lost=maybe(0.02, 0.0),
        doubled=maybe(0.02, 0.0),
        slow=maybe(0.02, 0.0),
        cut_every=maybe(10, math.inf),
        crash_every=maybe(15, math.inf),
        stop_every=maybe(40, math.inf),
        wipe_every=maybe(60, math.inf) if shape.kraft_version and shape.voters > 2 else math.inf,
        voters_every=maybe(20, math.inf),
        resign_every=maybe(60, math.inf),
        stall=maybe(0.01, 0.0),
        snapshot_every=maybe(10, math.inf),
        propose_every=random.choice([0.05, 0.5, 2.0]),
        drift=maybe(0.02, 0.0),
    )
    old_node = random.randrange(shape.voters) + 1 if random.random() < 0.1 else None
    return replace(shape, faults=faults, doubts=random.random() < 0.5, old_node=old_node)


class SimulatedNode:
    """A node: a disk that outlives it, and a member while it runs."""

    def __init__(self, cluster: "SimulatedQuorum", node_id: int, log: MemoryQuorumLog) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.directory = cluster.new_directory()
        self.log = log
        self.member: QuorumMember | None = None
        self.incarnation = 0
        self.drift = cluster.random.uniform(-1, 1) * cluster.shape.faults.drift
        self.applied = Offset(0)
        self.digest = 0
        self.is_syncing = False
        self.is_old = node_id == cluster.shape.old_node
        self.followed: dict[int, float] = {}
        """When other nodes last fetched from this one."""

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
            if self.member is not member or self.incarnation != incarnation:
                return

    def _perform(self, effect: QuorumEffect, member: QuorumMember) -> None:
        cluster, laws, log = self.cluster, self.cluster.laws, self.log
        match effect:
            case SetTimer(at):
                cluster.later(
                    max(at / (1 + self.drift) - cluster.time, 0) + 1e-6,
                    self._tick,
                    self.incarnation,
                    at,
                )
            case Send():
                laws.told(self.seat, effect, member, log)
                cluster.network.request(self, effect)
            case Answer(token, message):
                laws.told(self.seat, effect, member, log)
                cluster.network.answer(self, token, message)
            case AnswerFetch(token, fetched, start, bytes_max):
                laws.told(self.seat, effect, member, log)
                fetched.responses[0].partitions[0].records = log.read(start, bytes_max)
                cluster.network.answer(self, token, fetched)
            case AnswerFetchSnapshot(token, piece, snapshot_id, position, bytes_max):
                laws.told(self.seat, effect, member, log)
                data = log.snapshots[snapshot_id][position : position + bytes_max]
                piece.topics[0].partitions[0].unaligned_records = data
                cluster.network.answer(self, token, piece)
            case SaveElection(election):
                laws.saved(self.seat, log.election, election)
                log.election = election
            case AppendBatches(data):
                laws.appended(self.seat, log.append(data))
                self.sync()
            case TruncateLog(to):
                laws.truncated(self.seat, to, log.truncate(to), member.high_watermark)
            case QuorumCommitted(high_watermark):
                laws.committed_by(self.seat, high_watermark, member, cluster.disks)
                self._apply(high_watermark)
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

    def _tick(self, incarnation: int, at: float) -> None:
        if self.incarnation == incarnation and self.now().monotonic >= at:
            self.handle(Tick())

    def _apply(self, high_watermark: Offset) -> None:
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
        if self.member is not None and self.log.synced_end < self.log.end_offset:
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

    def __init__(self, cluster: "SimulatedQuorum") -> None:
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

    def request(self, node: SimulatedNode, send: Send) -> None:
        """Carry a request to where it is addressed."""
        target = int(send.peer.host[1:])
        self._carry(
            node.node_id, target, self._deliver, node, node.incarnation, send, target
        )

    def _deliver(
        self, source: SimulatedNode, incarnation: int, send: Send, target: int
    ) -> None:
        node = self._cluster.nodes[target]
        back = (source, incarnation, send.request_id, node)
        message = send.message
        if node.member is None:
            self._fail(back, Failure.REFUSED)
        elif isinstance(message, ApiVersionsRequest):
            level = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            self._respond(back, ApiVersionsResponse(supported_features=[level]))
        elif node.is_old and _is_pre_vote(message):
            self._fail(back, Failure.UNSUPPORTED_VERSION)
        else:
            node.followed[source.node_id] = self._cluster.time
            version = type(message)._versions[1]
            node.handle(PeerRequest(back, message, version, LISTENER))

    def _fail(self, back: Any, failure: Failure) -> None:
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
        self._carry(
            node.node_id, source.node_id, self._arrive, source, incarnation, response
        )

    def _arrive(self, node: SimulatedNode, incarnation: int, event: QuorumEvent) -> None:
        if node.incarnation == incarnation:
            node.handle(event)

    def answer(self, _node: SimulatedNode, token: Any, message: Message) -> None:
        """Carry an answer back; the operator's go nowhere."""
        if token is not None:
            self._respond(token, message)


def _is_pre_vote(message: Message) -> bool:
    return isinstance(message, VoteRequest) and message.topics[0].partitions[0].pre_vote


class SimulatedQuorum:
    """Nodes 1 to n vote at first, those behind them observe; everything follows from the seed."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.random = Random(seed)
        self.shape = shape
        self.faults = shape.faults
        self.time = 0.0
        self.laws = QuorumLaws()
        self.network = SimulatedNetwork(self)
        self.events = 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0
        self._values = 0
        count = shape.voters + shape.observers
        self.bootstrap = tuple(Peer(-2 - at, f"n{at + 1}", 9093) for at in range(count))
        self.static_voters: Voters = ()
        self.nodes: dict[int, SimulatedNode] = {}
        for node_id in range(1, count + 1):
            self.nodes[node_id] = SimulatedNode(self, node_id, MemoryQuorumLog())
        voters = tuple(self.nodes[at + 1].voter for at in range(shape.voters))
        for voter in voters:
            if shape.kraft_version:
                self.nodes[voter.node_id].log = formatted(voters)
        if not shape.kraft_version:
            self.static_voters = forget_directories(voters)
        self.disks: dict[ReplicaKey, MemoryQuorumLog] = {
            node.key: node.log for node in self.nodes.values()
        }
        self._wiped: SimulatedNode | None = None

    def new_directory(self) -> bytes:
        """Return the id of a new disk."""
        return self.random.randbytes(16)

    # Time.

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

    def start(self) -> None:
        """Start all nodes, and all that happens to them."""
        for node in self.nodes.values():
            node.start()
        faults = self.shape.faults
        self._every(faults.propose_every, self._propose)
        self._every(faults.cut_every, self._cut)
        self._every(faults.crash_every, self._crash)
        self._every(faults.stop_every, self._stop)
        self._every(faults.wipe_every, self._wipe)
        self._every(faults.voters_every, self._change_voters)
        self._every(faults.resign_every, self._resign)
        self._every(faults.snapshot_every, self._snapshot)
        self._every(1.0, self._audit)

    def _every(self, seconds: float, action: Callable[[], None]) -> None:
        if seconds < math.inf:
            self.later(self.random.expovariate(1 / seconds), self._again, seconds, action)

    def _again(self, seconds: float, action: Callable[[], None]) -> None:
        action()
        self._every(seconds, action)

    # What happens.

    def leaders(self) -> list[SimulatedNode]:
        """Return the nodes that believe they lead."""
        return [
            node
            for node in self.nodes.values()
            if node.member is not None and isinstance(node.member.role, Leader)
        ]

    def _propose(self) -> None:
        for node in self.leaders():
            self._values += 1
            node.handle(Propose([b"%d" % self._values] * self.random.randint(1, 3)))

    def _pick(self) -> SimulatedNode:
        leaders = self.leaders()
        if leaders and self.random.random() < 0.4:
            return self.random.choice(leaders)
        return self.nodes[self.random.randint(1, len(self.nodes))]

    def _cut(self) -> None:
        if self._is_healed:
            return
        kind = self.random.randrange(4)
        ids = list(self.nodes)
        victim = self._pick().node_id
        cuts = self.network.cuts
        cuts.clear()
        if kind == 0:  # all is well for a while
            return
        for other in ids:
            if other == victim:
                continue
            if kind in (1, 3) or self.random.random() < 0.3:
                cuts.add((victim, other))
            if kind in (2, 3) or self.random.random() < 0.3:
                cuts.add((other, victim))
        self.laws.counts["cuts"] += 1

    @property
    def _is_healed(self) -> bool:
        return self.faults is not self.shape.faults

    def _crash(self) -> None:
        node = self._pick()
        if node.member is not None and not self._is_healed:
            self.laws.counts["crashes"] += 1
            node.crash()
            self.later(self.random.choice([0.05, 1, 10]), self.restart, node)

    def restart(self, node: SimulatedNode) -> None:
        """Start a node that does not run."""
        if node.member is None:
            node.start()

    def _stop(self) -> None:
        node = self._pick()
        if node.member is not None and not self._is_healed:
            node.handle(Stop(5000))

    def _resign(self) -> None:
        for node in self.leaders():
            assert node.member is not None
            node.handle(Resign(node.member.role.epoch))

    def _wipe(self) -> None:
        """Take a voter's disk; not before the last one that lost its own votes again."""
        if self._is_healed or not self._may_wipe():
            return
        node = self.nodes[self.random.randint(1, self.shape.voters)]
        self.laws.counts["wipes"] += 1
        self._wiped = node
        node.crash()
        node.log = MemoryQuorumLog()
        node.directory = self.new_directory()
        self.disks[node.key] = node.log
        self.later(self.random.uniform(0.1, 5), self.restart, node)

    def _may_wipe(self) -> bool:
        """Say whether the disks of all voters but the next one to be lost are there."""
        leaders = self.leaders()
        if len(leaders) != 1 or leaders[0].member is None:
            return False
        member = leaders[0].member
        voters = member.voters
        if len(voters) < 3 or member.high_watermark != leaders[0].log.end_offset:
            return False
        return all(self.nodes[voter.node_id].key == voter.key for voter in voters)

    def _change_voters(self) -> None:
        leaders = self.leaders()
        if not leaders:
            return
        node = self.random.choice(leaders)
        assert node.member is not None
        voters = node.member.voters
        if node.member.kraft_version == 0:
            node.handle(UpgradeKraftVersion())
            return
        if self.random.random() < 0.5 and len(voters) > 1:
            gone = self.random.choice(voters)
            request: Message = RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter_id=gone.node_id,
                voter_directory_id=gone.directory_id,
            )
            self.laws.counts["removals asked for"] += 1
        else:
            joins = self._pick()
            request = AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter_id=joins.node_id,
                voter_directory_id=joins.directory,
                listeners=[Listener(name=LISTENER, host=f"n{joins.node_id}", port=9093)],
                ack_when_committed=self.random.random() < 0.5,
            )
            self.laws.counts["additions asked for"] += 1
        node.handle(PeerRequest(None, request, 0, LISTENER))

    def _snapshot(self) -> None:
        self._pick().snapshot()

    def _audit(self) -> None:
        """Look for leaders that should have noticed that none follows."""
        for node in self.leaders():
            member = node.member
            assert member is not None
            role = member.role
            assert isinstance(role, Leader)
            others = [v.node_id for v in member.voters if v.node_id != node.node_id]
            needed = len(member.voters) // 2 + 1 - (len(others) < len(member.voters))
            since = self.laws.led_since(role.epoch, self.time)
            heard = sorted((node.followed.get(each, since) for each in others), reverse=True)
            if needed and self.time - heard[needed - 1] > STALE_LEADER_SECONDS:
                raise LawViolation(
                    "a leader is followed", f"{node.seat} leads alone since {heard[needed - 1]}"
                )

    # The end.

    def heal(self) -> None:
        """End all faults for good; a leader and a commit have to follow."""
        self.faults = Faults()
        self.network.cuts.clear()
        for node in self.nodes.values():
            self.restart(node)
        self.run(HEAL_SECONDS)
        end = self.laws.committed_end
        self.run(HEAL_SECONDS)
        leaders = self.leaders()
        if len(leaders) != 1:
            raise LawViolation("progress", f"healed, {len(leaders)} nodes lead")
        if self.shape.faults.propose_every < math.inf and self.laws.committed_end <= end:
            raise LawViolation("progress", f"healed, nothing beyond {end} is committed")


def simulate(seed: int, shape: Shape, seconds: float) -> SimulatedQuorum:
    """Run a quorum for so long, then heal it; `LawViolation` names the seed by its notes."""
    cluster = SimulatedQuorum(seed, shape)
    try:
        cluster.start()
        cluster.run(seconds)
        cluster.heal()
    except (LawViolation, AssertionError) as error:
        error.add_note(f"seed {seed}, {shape}, at {cluster.time:.6f} s")
        raise
    return cluster
