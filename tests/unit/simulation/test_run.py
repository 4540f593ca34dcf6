"""Runs: clients and faults around one node, with all laws, again and again the same."""

import pytest

from moldau.simulation.restarts import NodeRestarts
from moldau.simulation.run import RunOutcome, SimulatedRun

pytestmark = pytest.mark.filterwarnings("ignore::moldau.client.errors.UndeliveredWarning")


def run(seed: int, *, seconds: float = 30.0, kinds: tuple[str, ...] = ()) -> RunOutcome:
    faults = NodeRestarts(every_seconds=8, kinds=kinds) if kinds else None
    return SimulatedRun(seed, seconds=seconds, faults=faults).execute()


def test_a_quiet_run_breaks_no_law():
    outcome = run(1)
    assert not outcome.violation
    assert outcome.operations_per_second >= 20
    assert outcome.outage_seconds < 1


@pytest.mark.parametrize("kind", ["kill", "power loss", "stop"])
def test_restarts_break_no_law(kind: str):
    seed = {"kill": 2, "power loss": 3, "stop": 4}[kind]
    outcome = run(seed, kinds=(kind,))
    assert not outcome.violation
    assert outcome.faults[kind]
    assert outcome.outage_seconds


def test_one_seed_has_one_trace():
    first, second = (run(5, kinds=("kill", "stop")) for _ in range(2))
    assert not first.violation
    assert first == second
    assert first.digest != run(6, kinds=("kill", "stop")).digest


def test_there_are_no_clusters_yet():
    with pytest.raises(ValueError, match="3 nodes: there are no clusters yet, 1 is allowed"):
        SimulatedRun(1, nodes=3)
