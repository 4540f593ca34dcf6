"""The simulated quorum finds the bugs that others have had, each within 200 seeds."""

from random import Random

import pytest

from moldau.simulation.quorum import simulate, swarm
from moldau.simulation.quorum_nodes import QuorumShape
from tests.unit.consensus.planted import PLANTS

SEEDS = 200

SHOWN_BY_FEW = {
    "told_before_saved",
    "vote_forgotten",
    "any_log_is_elected",
    "leader_counts_before_sync",
    "older_epoch_committed",
    "fetch_before_sync",
    "removed_leader_stays",
    "observers_count",
    "epoch_of_the_loser",
    "observers_stand",
}
"""A handful of seeds is enough: these are looked for in each run of the unit tests."""


@pytest.mark.parametrize(
    "name",
    [
        name if name in SHOWN_BY_FEW else pytest.param(name, marks=pytest.mark.long)
        for name in PLANTS
    ],
)
def test_the_simulation_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[name](monkeypatch)
    for seed in range(SEEDS):
        shape = QuorumShape(voters=(3, 5, 4)[seed % 3])
        try:
            simulate(seed, swarm(Random(seed), shape), 30)
        except AssertionError:  # a law's, or the machine's own
            return
    pytest.fail(f"{SEEDS} seeds do not show {name}")
