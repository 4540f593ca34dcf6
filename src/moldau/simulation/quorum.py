"""A quorum simulated: bare members over logs in memory, a bad network, crashes, lost disks."""

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

from moldau.consensus.events import (
    PeerRequest,
    Propose,
    Resign,
    Stop,
    UpgradeKraftVersion,
)
from moldau.consensus.roles import Leader
from moldau.consensus.voters import forget_directories
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted
from moldau.simulation.quorum_nodes import (
    CLUSTER_ID,
    LISTENER,
    QuorumFaults,
    QuorumShape,
    QuorumWorld,
    SimulatedNode,
)

STALE_LEADER_SECONDS = 8.0
"""Longer than any leader may go on whose voters do not fetch: twice check-quorum, and drift."""
HEAL_SECONDS = 60.0
"""How long a healed quorum may take to elect a leader and commit."""


def swarm(random: Random, shape: QuorumShape) -> QuorumShape:
    """Return the shape with a random subset of all faults."""

    def maybe(value: float, otherwise: float) -> float:
        return value * random.uniform(0.5, 2) if random.random() < 0.6 else otherwise

    faults = QuorumFaults(
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


class SimulatedQuorum(QuorumWorld):
    """Nodes 1 to n vote at first, those behind them observe."""

    def __init__(self, seed: int, shape: QuorumShape) -> None:
        super().__init__(seed, shape)
        self._values = 0
        for node_id in range(1, shape.voters + shape.observers + 1):
            directory = self.random.randbytes(16)
            self.nodes[node_id] = SimulatedNode(self, node_id, directory, MemoryQuorumLog())
        voters = tuple(self.nodes[at + 1].voter for at in range(shape.voters))
        if shape.kraft_version:
            for voter in voters:
                self.nodes[voter.node_id].log = formatted(voters)
        else:
            self.static_voters = forget_directories(voters)
        self.disks |= {node.key: node.log for node in self.nodes.values()}

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
        kind = self.random.randrange(5)
        ids = list(self.nodes)
        victim = self._pick().node_id
        cuts = self.network.cuts
        cuts.clear()
        if kind == 0:  # all is well for a while
            return
        if kind == 4:  # two of them, and the others
            pair = (victim, self.random.choice(ids))
            for one in pair:
                for other in ids:
                    if other not in pair:
                        cuts.update([(one, other), (other, one)])
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
        node.crash()
        node.log = MemoryQuorumLog()
        node.directory = self.random.randbytes(16)
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
            if len(voters) == 2 and gone.node_id == node.node_id:
                # As with Kafka, the one that is left may wait for the removed one for ever: with
                # the shorter log it gets no vote, and the other believes that it has none.
                return
            request: AddRaftVoterRequest | RemoveRaftVoterRequest = RemoveRaftVoterRequest(
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
            self.laws.check_leader(node.seat, member)
            others = [v.node_id for v in member.voters if v.node_id != node.node_id]
            needed = len(member.voters) // 2 + 1 - (len(others) < len(member.voters))
            since = max(self.laws.led_since(role.epoch, self.time), node.voters_since)
            # Another majority has its time from when it counts.
            heard = sorted(
                (max(node.followed.get(each, since), node.voters_since) for each in others),
                reverse=True,
            )
            if needed and self.time - heard[needed - 1] > STALE_LEADER_SECONDS:
                raise LawViolation(
                    "a leader is followed", f"{node.seat} leads alone since {heard[needed - 1]}"
                )

    # The end.

    def heal(self) -> None:
        """End all faults for good; a leader and a commit have to follow."""
        self.faults = QuorumFaults()
        self.network.cuts.clear()
        for node in self.nodes.values():
            self.restart(node)
        end = self.laws.committed_end
        until = self.time + HEAL_SECONDS
        while len(self.leaders()) != 1 or self.laws.committed_end <= end:
            if self.time > until:
                raise LawViolation(
                    "progress",
                    f"healed, {len(self.leaders())} nodes lead, and {self.laws.committed_end}"
                    f" is committed after {end}",
                )
            self.run(1.0)


def simulate(seed: int, shape: QuorumShape, seconds: float) -> SimulatedQuorum:
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
