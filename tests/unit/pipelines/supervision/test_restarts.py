"""Laws of the machine that starts queries again."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.supervision.failures import Failure
from moldau.pipelines.supervision.restarts import (
    ONCE,
    Ended,
    Policy,
    Report,
    Restarts,
    Running,
    Starting,
    StartRun,
    StopRun,
    Waiting,
)

POLICY = Policy(wait_seconds_min=1, wait_seconds_max=8, well_seconds=60)
BRIEF = Failure("the broker is away", is_final=False, text="")
FINAL = Failure("there is no such option", is_final=True, text="")


def machine(
    *names: str, policy: Policy = POLICY, chance: Callable[[], float] = lambda: 1.0
) -> Restarts:
    restarts = Restarts(names or ("a",), policy, chance)
    assert restarts.begin() == [StartRun(name) for name in names or ("a",)]
    return restarts


def test_a_query_that_fails_waits_longer_each_time_and_starts_again() -> None:
    restarts, now, waits = machine(), 0.0, []
    for _ in range(6):
        assert restarts.started("a", now) == []
        [report] = restarts.failed("a", BRIEF, now)
        state = restarts.states["a"]
        assert isinstance(state, Waiting)
        waits.append(state.until - now)
        assert report == Report("a", f"the broker is away; it starts again in {waits[-1]:.1f} s")
        assert restarts.tick(math.nextafter(state.until, -math.inf)) == []
        now = state.until
        assert restarts.tick(now) == [StartRun("a")]
        assert restarts.tick(now) == []
    assert waits == [1, 2, 4, 8, 8, 8]


def test_a_query_that_has_run_well_waits_briefly() -> None:
    restarts = machine()
    for _ in range(3):
        restarts.failed("a", BRIEF, 0)
        restarts.tick(100)
    restarts.started("a", 100)
    restarts.failed("a", BRIEF, 160)
    assert restarts.states["a"] == Waiting(161, BRIEF.line)


def test_what_restarting_cannot_mend_ends_the_query_and_no_other() -> None:
    restarts = machine("a", "b")
    restarts.started("b", 0)
    assert restarts.failed("a", FINAL, 0) == [Report("a", FINAL.line)]
    assert restarts.states == {"a": Ended(FINAL.line), "b": Running(0)}
    assert not restarts.is_over
    restarts.ended("b")
    assert restarts.is_over
    assert not restarts.is_fine


def test_a_run_that_is_to_end_gives_up() -> None:
    restarts = machine(policy=ONCE)
    tries = 0
    while not restarts.is_over:
        restarts.failed("a", BRIEF, tries * 100)
        tries += 1
        restarts.tick(tries * 100)
    assert tries == ONCE.tries_max
    assert not restarts.is_fine


def test_stopping() -> None:
    restarts = machine("running", "waiting", "starting")
    restarts.started("running", 0)
    restarts.failed("waiting", BRIEF, 0)
    assert restarts.stop() == [StopRun("running")]
    assert restarts.states["waiting"] == Ended()
    assert restarts.started("starting", 1) == [StopRun("starting")]
    restarts.ended("running")
    assert restarts.failed("starting", BRIEF, 2) == [Report("starting", BRIEF.line)]
    assert restarts.is_over
    assert restarts.is_fine
    assert restarts.tick(1e9) == []


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_waits_are_bounded_however_often_a_query_fails(failures: int, chance: float) -> None:
    restarts = machine(chance=lambda: chance)
    for _ in range(min(failures, 80)):
        restarts.failed("a", BRIEF, 0)
        state = restarts.states["a"]
        assert isinstance(state, Waiting)
        assert POLICY.wait_seconds_min / 2 <= state.until <= POLICY.wait_seconds_max
        restarts.tick(state.until)


HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(["started", "brief", "final", "ended", "time", "stop"]),
              st.sampled_from("abc")),
    max_size=60,
)  # fmt: skip


@given(HAPPENINGS)
def test_whatever_happens_to_one_query_the_others_stay_as_they_are(
    happenings: list[tuple[str, str]],
) -> None:
    restarts, now = machine("a", "b", "c"), 0.0
    for what, name in happenings:
        before = dict(restarts.states)
        state, now = before[name], now + 1
        match what:
            case "started" if isinstance(state, Starting):
                effects = restarts.started(name, now)
            case "brief" | "final" if isinstance(state, Starting | Running):
                effects = restarts.failed(name, FINAL if what == "final" else BRIEF, now)
            case "ended" if isinstance(state, Running):
                effects = restarts.ended(name)
            case "time":
                effects = restarts.tick(now)
                changed = {key for key, each in restarts.states.items() if each != before[key]}
                assert {effect.name for effect in effects} == changed
                continue
            case "stop":
                effects = restarts.stop()
                assert not any(isinstance(each, Waiting) for each in restarts.states.values())
                continue
            case _:
                continue
        assert all(effect.name == name for effect in effects)
        assert {key: each for key, each in restarts.states.items() if key != name} == {
            key: each for key, each in before.items() if key != name
        }
        if isinstance(state, Ended):
            pytest.fail("what has ended does nothing any more")
