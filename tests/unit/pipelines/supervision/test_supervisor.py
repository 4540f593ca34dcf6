"""Queries that fail are started again while others go on, without Spark."""

import json
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipelines.errors import PipelineError, RetriableError, SessionLostError
from moldau.pipelines.supervision.failures import Failure
from moldau.pipelines.supervision.progress import QueryStatus
from moldau.pipelines.supervision.restarts import Policy
from moldau.pipelines.supervision.supervisor import Supervisor

AT_ONCE = Policy(wait_seconds_min=0.0, wait_seconds_max=0.0)


class Audience:
    """Keeps what it is told, and acts on it."""

    def __init__(self, act: Callable[[dict[str, QueryStatus]], None] = lambda _: None) -> None:
        self.reports: list[tuple[str, str]] = []
        self.last: dict[str, QueryStatus] = {}
        self._act = act

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        self.last = {status.query: status for status in statuses}
        self._act(self.last)

    def report(self, query: str, line: str) -> None:
        self.reports.append((query, line))

    def explain(self, failure: Failure) -> None:
        pass


class Query:
    """A streaming query that runs until it is told otherwise."""

    def __init__(self, *batches: dict[str, Any], error: Exception | None = None) -> None:
        self.isActive = error is None
        self.recentProgress = [
            SimpleNamespace(json=json.dumps(each), batchId=each["batchId"]) for each in batches
        ]
        self._error = error
        self.status = {"message": "Processing new data"}

    @property
    def lastProgress(self) -> object:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        self.isActive = False


class MortalQuery(Query):
    """A query of which nothing can be asked when its session is lost."""

    def __init__(self, runner: "Runner") -> None:
        self._runner = runner
        super().__init__()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            assert self._runner.loss is None, f"{name} is asked of a session that is lost"
        return super().__getattribute__(name)


class DyingQuery(Query):
    """A query whose session is lost in the moment when something is asked."""

    def __init__(self, runner: "Runner", lost_at: str) -> None:
        super().__init__(error=None if lost_at in ("isActive", "stop") else OSError("gone"))
        self._runner = runner
        self._lost_at = lost_at

    def __getattribute__(self, name: str) -> Any:
        if name == super().__getattribute__("__dict__").get("_lost_at"):
            self._runner.loss = SessionLostError("its JVM was killed by signal 9")
            raise ConnectionRefusedError
        return super().__getattribute__(name)


class Runner:
    """Starts what it is told to, in a session that can be lost."""

    def __init__(self, start: Callable[[str], Any]) -> None:
        self.start_query = start
        self.loss: Exception | None = None
        self.reopened = 0
        self.refusals: list[Exception] = []

    def find_loss(self, _error: Exception | None = None) -> Exception | None:
        return self.loss

    def reopen(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.reopened += 1
        self.loss = None


def batch(number: int, late_rows: int, *, is_idle: bool = False) -> dict[str, Any]:
    return {
        "batchId": number,
        "batchDuration": 100,
        "durationMs": {} if is_idle else {"addBatch": 90},
        "sources": [{"numInputRows": 0 if is_idle else 10}],
        "stateOperators": [{"numRowsDroppedByWatermark": late_rows}],
    }


def test_a_query_that_fails_starts_again_and_the_other_goes_on() -> None:
    steady = Query()
    attempts = [Query(error=OSError("gone")), Query(error=OSError("gone")), Query()]
    starts: list[str] = []

    def start(name: str) -> Any:
        starts.append(name)
        return steady if name == "steady" else attempts.pop(0)

    def act(last: dict[str, QueryStatus]) -> None:
        if not attempts:
            supervisor.ask_to_stop()

    audience = Audience(act)
    supervisor = Supervisor(["shaky", "steady"], Runner(start), audience, policy=AT_ONCE)
    assert supervisor.run()
    assert starts == ["shaky", "steady", "shaky", "shaky"]
    assert audience.reports == [("shaky", "OSError: gone; it starts again in 0.0 s")] * 2
    assert audience.last["shaky"].restarts == 2
    assert not steady.isActive


def test_a_query_that_cannot_start_is_given_up_and_the_other_ends_well() -> None:
    def start(name: str) -> Any:
        if name == "wrong":
            raise PipelineError("there is no topic in")
        query = Query(batch(0, 0))
        query.isActive = False
        return query

    audience = Audience()
    alone: frozenset[str] = frozenset()
    feeders = {"wrong": alone, "right": alone}
    assert not Supervisor(feeders, Runner(start), audience, feeders=feeders).run()
    assert audience.reports == [("wrong", "there is no topic in")]
    assert {name: each.state for name, each in audience.last.items()} == {
        "wrong": "failed",
        "right": "stopped",
    }


def test_every_batch_is_counted_once() -> None:
    query = Query(batch(4, 1), batch(5, 2), batch(6, 0, is_idle=True))
    looks = 0

    def act(last: dict[str, QueryStatus]) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            # The number that was told while there was nothing to do is now a batch's.
            query.recentProgress += Query(batch(6, 4), batch(7, 8)).recentProgress
        else:
            supervisor.ask_to_stop()

    audience = Audience(act)
    supervisor = Supervisor(["a"], Runner(lambda _: query), audience)
    assert supervisor.run()
    assert audience.last["a"].totals.late_rows == 15
    assert audience.last["a"].last is not None
    assert audience.last["a"].last.batch == 7


def test_who_is_to_stop_before_it_starts_starts_nothing() -> None:
    asked = threading.Event()

    def start(name: str) -> Any:
        supervisor.ask_to_stop()
        asked.set()
        return Query()

    audience = Audience()
    supervisor = Supervisor(["a", "b"], Runner(start), audience)
    assert supervisor.run()
    assert asked.is_set()
    assert [each.restarts for each in audience.last.values()] == [0, 0]
    assert [each.state for each in audience.last.values()] == ["stopped", "stopped"]


def test_a_session_that_is_lost_is_opened_again_with_one_line() -> None:
    started: list[str] = []
    lost = SessionLostError("its JVM was killed by signal 9")

    def start(name: str) -> Any:
        started.append(name)
        return MortalQuery(runner) if runner.reopened == 0 else Query()

    def act(last: dict[str, QueryStatus]) -> None:
        if runner.reopened == 0:
            runner.loss = lost
        elif all(status.state == "running" for status in last.values()):
            supervisor.ask_to_stop()

    audience = Audience(act)
    runner = Runner(start)
    runner.refusals = [RetriableError("no broker answers")]
    supervisor = Supervisor(["a", "b"], runner, audience, policy=AT_ONCE)
    assert supervisor.run()
    assert started == ["a", "b", "a", "b"]
    assert audience.reports == [
        ("spark", "its JVM was killed by signal 9; it starts again in 0.0 s"),
        ("spark", "no broker answers; it starts again in 0.0 s"),
    ]
    assert [each.restarts for each in audience.last.values()] == [1, 1]


@pytest.mark.parametrize("lost_at", ["isActive", "exception", "stop"])
def test_an_error_may_be_the_first_sign_of_a_lost_session(lost_at: str) -> None:
    def start(_name: str) -> Any:
        return Query() if runner.reopened else DyingQuery(runner, lost_at)

    def act(last: dict[str, QueryStatus]) -> None:
        if lost_at == "stop" or (runner.reopened and last["a"].state == "running"):
            supervisor.ask_to_stop()

    audience = Audience(act)
    runner = Runner(start)
    supervisor = Supervisor(["a", "b"], runner, audience, policy=AT_ONCE)
    assert supervisor.run()
    assert [name for name, _ in audience.reports] == ["spark"]
    assert {each.state for each in audience.last.values()} == {"stopped"}


def test_without_a_session_nothing_is_left_to_do() -> None:
    def act(_last: dict[str, QueryStatus]) -> None:
        runner.loss = SessionLostError("its JVM has ended with code 52")

    audience = Audience(act)
    runner = Runner(lambda _: MortalQuery(runner))
    runner.refusals = [PipelineError("app shop was made by a function")]
    supervisor = Supervisor(["a", "b"], runner, audience, policy=AT_ONCE)
    assert not supervisor.run()
    assert audience.reports[1:] == [("spark", "app shop was made by a function")]
    assert {each.state for each in audience.last.values()} == {"failed"}


def test_a_query_runs_behind_those_that_feed_it_and_round_in_a_circle() -> None:
    started: list[str] = []
    rounds = {"source": 1, "one": 3, "other": 1, "end": 1}

    def start(name: str) -> Any:
        started.append(name)
        rounds[name] -= 1
        query = Query(*([batch(0, 0)] if rounds[name] >= 0 else []))
        query.isActive = False
        return query

    circle = frozenset({"source", "one", "other"})
    feeders = {"end": circle, "one": circle, "other": circle, "source": frozenset[str]()}
    audience = Audience()
    assert Supervisor(feeders, Runner(start), audience, feeders=feeders).run()
    assert started == ["source", *["one", "other"] * 4, "end"]
    assert [each.restarts for each in audience.last.values()] == [0] * 4


def test_the_first_batch_is_shown_while_it_runs_and_no_later_one_that_has_ended() -> None:
    query = Query()
    seen: list[str | None] = []

    def act(last: dict[str, QueryStatus]) -> None:
        so_far = last["a"].so_far
        seen.append(None if so_far is None else so_far.phase)
        if len(seen) == 2:
            query.recentProgress += Query(batch(0, 0)).recentProgress
        if last["a"].last is not None:
            supervisor.ask_to_stop()

    audience = Audience(act)
    supervisor = Supervisor(["a"], Runner(lambda _: query), audience)
    assert supervisor.run()
    assert seen[:3] == ["Processing new data", "Processing new data", None]
    assert audience.last["a"].totals.rows_in == 10
