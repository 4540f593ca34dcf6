"""The simulated quorum finds the bugs that others have had, each within 200 seeds."""

from random import Random

import pytest

from moldau.simulation.quorum import simulate, swarm
from moldau.simulation.quorum_nodes import QuorumShape
from tests.unit.consensus.planted import PLANTS

SEEDS = 200


@pytest.mark.parametrize("name", PLANTS)
def test_the_simulation_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[name](monkeypatch)
    for seed in range(SEEDS):
        shape = QuorumShape(voters=(3, 5, 4)[seed % 3])
        try:
            simulate(seed, swarm(Random(seed), shape), 30)
        except AssertionError:  # a law's, or the machine's own
            return
    pytest.fail(f"{SEEDS} seeds do not show {name}")
