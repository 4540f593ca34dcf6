import math
from dataclasses import replace
from random import Random

import pytest

from moldau.simulation.quorum import SimulatedQuorum, simulate, swarm
from moldau.simulation.quorum_nodes import QuorumFaults, QuorumShape

FIXED = QuorumFaults(crash_every=8, cut_every=6, lost=0.02, stall=0.02, stop_every=30)


@pytest.mark.parametrize("voters", range(1, 8))
def test_a_quorum_of_fixed_voters(voters: int) -> None:
    shape = QuorumShape(voters, observers=1, kraft_version=voters % 2, faults=FIXED)
    cluster = simulate(voters, shape, 10)
    assert cluster.laws.counts["leaders"] > 0
    assert cluster.laws.committed_end > 0


@pytest.mark.parametrize("seed", range(8))
def test_a_quorum_under_all_faults(seed: int) -> None:
    random = Random(seed)
    voters = random.choice([2, 3, 3, 4, 5, 5, 7])
    shape = QuorumShape(voters, random.randrange(3), kraft_version=int(random.random() < 0.8))
    simulate(seed, swarm(random, shape), 10)


def test_a_seed_replays() -> None:
    shape = swarm(Random(7), QuorumShape(3))
    first, second = (simulate(7, shape, 10) for _ in range(2))
    assert first.laws.counts == second.laws.counts
    assert first.laws.committed == second.laws.committed
    assert first.events == second.events


@pytest.mark.long
def test_what_a_run_takes_the_quorum_through() -> None:
    """The faults reach snapshots, truncations, removed leaders and nodes that lost their disk."""
    counts = sum(
        (
            simulate(seed, QuorumShape(3, 1, faults=replace(FIXED, **MORE)), 30).laws.counts
            for seed in range(4)
        ),
        start=SimulatedQuorum(0, QuorumShape(1)).laws.counts,
    )
    for what in (
        "truncations",
        "snapshots fetched",
        "wipes",
        "Leader -> Resigned: removed",
        "Leader -> Resigned: no majority",
        "Prospective -> Follower: lost",
        "Unattached -> Resigned: started",
    ):
        assert counts[what], f"{what}: {dict(counts)}"


MORE = {"wipe_every": 20, "voters_every": 6, "snapshot_every": 2, "doubled": 0.02, "slow": 0.02}


def test_without_faults_nothing_is_lost_or_repeated() -> None:
    cluster = SimulatedQuorum(1, QuorumShape(3, 1, faults=QuorumFaults(propose_every=0.2)))
    cluster.start()
    cluster.run(30)
    counts = cluster.laws.counts
    assert counts["leaders"] == 1
    assert counts["truncations"] == counts["crashes"] == 0
    ends = {node.applied for node in cluster.nodes.values() if node.node_id <= 3}
    assert max(ends) - min(ends) < 10
    assert math.isclose(cluster.time, 30)
