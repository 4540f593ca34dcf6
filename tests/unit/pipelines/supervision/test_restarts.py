"""Laws of the machine that starts queries again."""

import math
from collections.abc import Callable
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.waves import find_circle, find_feeders
from moldau.pipelines.supervision.failures import Failure
from moldau.pipelines.supervision.restarts import (
    ONCE,
    SPARK,
    Ended,
    Held,
    OpenSession,
    Policy,
    Report,
    RestartEffect,
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
                assert {effect.name for effect in named(effects)} == changed
                continue
            case "stop":
                effects = restarts.stop()
                assert not any(isinstance(each, Waiting) for each in restarts.states.values())
                continue
            case _:
                continue
        assert all(effect.name == name for effect in named(effects))
        assert {key: each for key, each in restarts.states.items() if key != name} == {
            key: each for key, each in before.items() if key != name
        }
        if isinstance(state, Ended):
            pytest.fail("what has ended does nothing any more")


# Queries that feed each other, in a run that ends.


def ending(**feeders: str) -> Restarts:
    """Return a machine for queries, each with the letters of those that feed it."""
    known = {name: frozenset(found) for name, found in feeders.items()}
    return Restarts(feeders, ONCE, lambda: 1.0, known)


def test_a_query_is_held_until_all_that_feed_it_have_ended() -> None:
    restarts = ending(c="ab", b="", a="")
    assert restarts.begin() == [StartRun("b"), StartRun("a")]
    assert restarts.states["c"] == Held(("a", "b"))
    for name in "ab":
        restarts.started(name, 0)
    assert restarts.ended("a", has_moved=True) == []
    assert named(restarts.failed("b", BRIEF, 0))[0].name == "b"
    assert restarts.states["c"] == Held(("a", "b"))
    assert restarts.tick(10) == [StartRun("b")]
    assert restarts.ended("b") == [StartRun("c")]
    restarts.started("c", 11)
    restarts.ended("c", has_moved=True)
    assert restarts.is_over
    assert restarts.is_fine


def test_a_query_that_is_given_up_stops_those_that_it_feeds() -> None:
    restarts = ending(a="", b="a", c="ab", other="")
    restarts.begin()
    reason = "it is not started: query a, which feeds it, was given up"
    assert restarts.failed("a", FINAL, 0) == [
        Report("a", FINAL.line),
        Report("b", reason),
        Report("c", reason),
    ]
    assert restarts.states["other"] == Starting()
    restarts.ended("other")
    assert restarts.is_over
    assert not restarts.is_fine


def test_a_circle_goes_round_until_nothing_moves() -> None:
    restarts = ending(a="ab", b="ab", end="ab")
    assert restarts.begin() == [StartRun("a"), StartRun("b")]
    for _ in range(3):
        assert restarts.ended("a") == []
        assert restarts.ended("b", has_moved=True) == [StartRun("a"), StartRun("b")]
    restarts.ended("b")
    assert restarts.ended("a") == [StartRun("end")]


def test_a_circle_that_is_given_up_goes_round_no_more() -> None:
    restarts = ending(a="ab", b="ab", end="ab")
    restarts.begin()
    restarts.ended("a", has_moved=True)
    assert [effect.name for effect in named(restarts.failed("b", FINAL, 0))] == ["b", "end"]
    assert restarts.is_over


def test_those_that_are_held_end_when_all_are_to_stop() -> None:
    restarts = ending(a="a", b="a")
    restarts.begin()
    restarts.started("a", 0)
    assert restarts.stop() == [StopRun("a")]
    assert restarts.ended("a", has_moved=True) == []
    assert restarts.is_over
    assert restarts.is_fine


# The session.


def named(effects: list[RestartEffect]) -> list[StartRun | StopRun | Report]:
    return [effect for effect in effects if not isinstance(effect, OpenSession)]


LOST = Failure("its JVM was killed", is_final=False, text="")


def test_a_session_that_is_lost_is_opened_once_for_all() -> None:
    restarts, now, waits = machine("a", "b", "c"), 0.0, []
    restarts.ended("c")
    restarts.started("a", now)
    for _ in range(5):
        [report] = restarts.lost(LOST, now)
        state = restarts.states["a"]
        assert isinstance(state, Waiting)
        assert restarts.states == {"a": state, "b": state, "c": Ended()}
        waits.append(state.until - now)
        assert report == Report(SPARK, f"its JVM was killed; it starts again in {waits[-1]:.1f} s")
        assert restarts.tick(math.nextafter(state.until, -math.inf)) == []
        now = state.until
        assert restarts.tick(now) == [OpenSession()]
        # Nothing starts before it is there.
        assert restarts.tick(now) == []
        assert restarts.opened(now) == []
        assert restarts.tick(now) == [StartRun("a"), StartRun("b")]
    assert waits == [1, 2, 4, 8, 8]


def test_a_session_that_has_run_well_is_opened_soon() -> None:
    restarts = machine()
    for _ in range(3):
        restarts.lost(LOST, 0)
        restarts.tick(100)
    restarts.opened(100)
    restarts.tick(100)
    restarts.started("a", 100)
    restarts.lost(LOST, 160)
    assert restarts.states["a"] == Waiting(161, LOST.line)


def test_a_query_that_waits_by_itself_waits_for_the_session_too() -> None:
    restarts = machine("a", "b")
    restarts.failed("a", BRIEF, 0)
    restarts.lost(LOST, 0.5)
    assert restarts.states == {"a": Waiting(1, BRIEF.line), "b": Waiting(1.5, LOST.line)}
    assert restarts.tick(1) == []
    assert restarts.tick(1.5) == [OpenSession()]
    restarts.opened(2)
    assert restarts.tick(2) == [StartRun("a"), StartRun("b")]


def test_without_a_session_all_are_given_up_with_one_line() -> None:
    restarts = machine("a", "b")
    restarts.started("a", 0)
    restarts.lost(LOST, 0)
    restarts.tick(1)
    assert restarts.lost(FINAL, 1) == [Report(SPARK, FINAL.line)]
    assert restarts.states == {"a": Ended(FINAL.line), "b": Ended(FINAL.line)}
    assert not restarts.is_fine


def test_a_run_that_is_to_end_opens_few_sessions() -> None:
    restarts = ending(a="", b="a")
    restarts.begin()
    losses = 0
    while not restarts.is_over:
        restarts.lost(LOST, losses * 100)
        losses += 1
        restarts.tick(losses * 100)
    assert losses == ONCE.tries_max
    assert restarts.states["b"] == Ended(LOST.line)


def test_a_session_that_is_lost_while_all_stop_is_no_failure() -> None:
    restarts = machine("a", "b")
    for name in "ab":
        restarts.started(name, 0)
    restarts.stop()
    assert restarts.lost(LOST, 1) == [Report(SPARK, LOST.line)]
    assert restarts.is_over
    assert restarts.is_fine
    assert restarts.tick(1e9) == []


@given(
    st.lists(st.sampled_from(["start", "end", "move", "brief", "final", "lose", "time", "stop"])),
    st.lists(st.sets(st.integers(0, 3)), min_size=4, max_size=4),
    st.randoms(use_true_random=False),
)
def test_no_query_starts_before_its_feeders_nor_without_a_session(
    happenings: list[str], reads: list[set[int]], chance: Random
) -> None:
    names = "abcd"
    topics = [SimpleNamespace(topics=[names[each] for each in read]) for read in reads]
    queries = [SimpleNamespace(name=n, topic=n, plan=t) for n, t in zip(names, topics, strict=True)]
    feeders = find_feeders(queries)  # type: ignore[arg-type]
    restarts, now, has_session = Restarts(names, ONCE, lambda: 1.0, feeders), 0.0, True
    effects = restarts.begin()
    for what in [*happenings, *["time", "end"] * 50]:
        for effect in effects:
            if isinstance(effect, StartRun):
                assert has_session
                behind = feeders[effect.name] - find_circle(feeders, effect.name)
                assert all(restarts.states[each] == Ended() for each in behind)
            elif isinstance(effect, OpenSession):
                assert not has_session
                has_session = True
                restarts.opened(now)
        now += 100
        running = [n for n, s in restarts.states.items() if isinstance(s, Starting | Running)]
        name, effects = chance.choice(running) if running else None, []
        match what:
            case "start" if name is not None and isinstance(restarts.states[name], Starting):
                effects = restarts.started(name, now)
            case "end" | "move" if name is not None:
                effects = restarts.ended(name, has_moved=what == "move")
            case "brief" | "final" if name is not None:
                effects = restarts.failed(name, FINAL if what == "final" else BRIEF, now)
            case "lose" if running:
                effects, has_session = restarts.lost(LOST, now), False
            case "time":
                effects = restarts.tick(now)
            case "stop":
                effects = restarts.stop()
            case _:
                pass
    # What is left to itself comes to its end.
    assert restarts.is_over
