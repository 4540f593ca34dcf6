"""Each kind of fault happens in a run, which is the same when its script is replayed."""

import pytest

from moldau.simulation.faults.injector import FAULT_KINDS, scripted
from moldau.simulation.faults.script import FaultScript, ScriptedFault
from moldau.simulation.faults.shrink import run_script
from moldau.simulation.faults.swarm import swarming

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::moldau.client.errors.UndeliveredWarning"),
]

SECONDS = 3.0
SEED = 3  # with durability=fsync, so that power may be lost


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_kind_happens_and_breaks_no_law(kind: str) -> None:
    draw = FAULT_KINDS[kind]
    run, _ = swarming(SEED, 1.0, [])
    target, details = draw.draw(run.world.random("test"), run)
    counter = draw.counters[0]
    number = {"end": 1, "operation": 20}.get(counter, 400 if kind == "pause" else 40)
    texts = tuple((name, str(value)) for name, value in details.items())
    fault = ScriptedFault(kind, target, counter, number, texts)
    run, injector = scripted(FaultScript(SEED, SECONDS, (fault,)))
    outcome = run.execute()
    assert not outcome.violation
    assert outcome.faults == {kind: 1}
    assert injector.happened == [fault]


def test_the_script_of_a_swarm_is_the_same_run() -> None:
    run, injector = swarming(1, SECONDS, None)
    outcome = run.execute()
    assert injector.happened
    script = FaultScript.parse(str(FaultScript(1, SECONDS, tuple(injector.happened))))
    replayed, _ = run_script(script)
    assert replayed.digest == outcome.digest
