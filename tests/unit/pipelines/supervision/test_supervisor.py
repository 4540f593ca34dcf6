"""Queries that fail are started again while others go on, without Spark."""

import json
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from moldau.pipelines.errors import PipelineError
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

    @property
    def lastProgress(self) -> object:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        self.isActive = False


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
    supervisor = Supervisor(["shaky", "steady"], start, audience, policy=AT_ONCE)
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
    assert not Supervisor(["wrong", "right"], start, audience, once=True).run()
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
    supervisor = Supervisor(["a"], lambda _: query, audience)  # type: ignore[arg-type, return-value]
    assert supervisor.run()
    assert audience.last["a"].late_rows == 15
    assert audience.last["a"].last is not None
    assert audience.last["a"].last.batch == 7


def test_who_is_to_stop_before_it_starts_starts_nothing() -> None:
    asked = threading.Event()

    def start(name: str) -> Any:
        supervisor.ask_to_stop()
        asked.set()
        return Query()

    audience = Audience()
    supervisor = Supervisor(["a", "b"], start, audience)
    assert supervisor.run()
    assert asked.is_set()
    assert [each.restarts for each in audience.last.values()] == [0, 0]
    assert [each.state for each in audience.last.values()] == ["stopped", "stopped"]
