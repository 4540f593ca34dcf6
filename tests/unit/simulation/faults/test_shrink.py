"""Shrinking leaves what breaks the law, and nothing else."""

from dataclasses import replace

from moldau.simulation.faults.script import FaultScript, ScriptedFault
from moldau.simulation.faults.shrink import Shrinker
from moldau.simulation.run import RunOutcome

GUILTY = {3, 11}
NEEDED_SECONDS = 5.0


def fault(number: int) -> ScriptedFault:
    return ScriptedFault("kill", "node-1", "step", number)


def run(script: FaultScript) -> tuple[RunOutcome, FaultScript]:
    numbers = {each.number for each in script.faults}
    is_broken = (
        numbers >= GUILTY and script.seconds >= NEEDED_SECONDS and "mill-1" in script.clients
    )
    outcome = RunOutcome(script.seed, violation="seed 1 at 3.5 s: lost write: it" * is_broken)
    # The last fault comes too late to happen.
    return outcome, replace(script, faults=tuple(f for f in script.faults if f.number < 16))


SCRIPT = FaultScript(1, 60.0, tuple(map(fault, range(17))), ("payer-1", "mill-1", "reader-1"))


def test_only_the_guilty_are_left() -> None:
    shrinker = Shrinker(SCRIPT, "lost write", lambda: False, run)
    script = shrinker.shrink()
    assert {each.number for each in script.faults} == GUILTY
    assert script.clients == ("mill-1",)
    assert NEEDED_SECONDS <= script.seconds < 2 * NEEDED_SECONDS


def test_another_law_is_not_the_same() -> None:
    assert Shrinker(SCRIPT, "duplicate", lambda: False, run).shrink() == SCRIPT


def test_no_run_begins_when_the_time_is_over() -> None:
    shrinker = Shrinker(SCRIPT, "lost write", lambda: True, run)
    assert shrinker.shrink() == SCRIPT
    assert not shrinker.runs
