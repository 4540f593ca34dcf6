"""When queries are started, started again and given up: a machine without threads or clocks.

| a query is | and this happens | so it becomes |
|---|---|---|
| Held | those that feed it have ended | Starting |
| Held | one that feeds it is given up | Ended, with the reason |
| Starting | it has started | Running |
| Running, Starting | it fails, and may do better next time | Waiting, for longer each time |
| Running, Starting | it fails, as it would again | Ended, with the reason |
| Running, Starting | it ends by itself, or was stopped | Ended |
| Ended | its circle has ended, and something has moved in it | Starting |
| Waiting | the time has come | Starting |
| Waiting, Held | all are to stop | Ended |
| any but Ended | Spark's session is lost | Waiting, all for the same time; Held stays |
| any but Ended | no session can be opened any more | Ended, with the reason |

What happens to one query changes nothing for the others, but for those that it feeds in a run that
ends: there a query is held until all that it reads is written. Queries that go round in a circle
run together, and once more for as long as one of them has had something to do.

The session is Running, Waiting or Starting, as a query is, and nothing starts without it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from moldau.pipelines.streams.waves import find_circle
from moldau.pipelines.supervision.failures import Failure

SPARK: Final = "spark"
"""The name of reports on the session, which concern no single query."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to wait before a query starts again, and how often."""

    wait_seconds_min: float = 1.0
    wait_seconds_max: float = 60.0
    well_seconds: float = 60.0
    """Whoever has run for so long starts over with short waits."""
    tries_max: float = math.inf
    """How often a query may fail in a row before it is given up."""


LIVE = Policy()
ONCE = Policy(well_seconds=math.inf, tries_max=5)
"""A run that is to end cannot wait for ever."""


# States.


@dataclass(frozen=True, slots=True)
class Held:
    """It waits for the end of the queries that feed it."""

    feeders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Starting:
    """It is about to be started."""


@dataclass(frozen=True, slots=True)
class Running:
    """It runs, since a time in seconds."""

    since: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """It has failed, and starts again at a time in seconds."""

    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """It runs no more; a reason says why it was given up."""

    reason: str | None = None


RestartState: TypeAlias = Held | Starting | Running | Waiting | Ended


# Effects.


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start it; then say `started` or `failed`."""

    name: str


@dataclass(frozen=True, slots=True)
class StopRun:
    """Stop it; then say `ended`."""

    name: str


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Open a session in the place of the one that is lost; then say `opened` or `lost`."""


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the user who runs the app."""

    name: str
    line: str


RestartEffect: TypeAlias = StartRun | StopRun | OpenSession | Report


class Restarts:
    """Decides for all queries of an app; each method returns what is to be done.

    Times are seconds of any clock that does not go back; `chance` returns numbers from 0 to 1.
    `feeders` says, for a run that ends, which queries each waits for (`find_feeders`).
    """

    def __init__(
        self,
        names: Iterable[str],
        policy: Policy,
        chance: Callable[[], float],
        feeders: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._policy = policy
        self._chance = chance
        self._states: dict[str, RestartState] = dict.fromkeys(names, Starting())
        self._failures = dict.fromkeys(self._states, 0)
        self._session: Starting | Running | Waiting = Running(-math.inf)
        self._session_failures = 0
        self._is_stopping = False
        known = feeders or dict.fromkeys(self._states, frozenset[str]())
        self._circles = {name: find_circle(known, name) for name in self._states}
        self._feeders = {name: known[name] - self._circles[name] for name in self._states}
        self._moved: set[str] = set()
        """Those that had something to do since their circle was started."""

    @property
    def states(self) -> Mapping[str, RestartState]:
        """How each query is."""
        return MappingProxyType(self._states)

    @property
    def is_over(self) -> bool:
        """Whether nothing runs, and nothing will."""
        return all(isinstance(state, Ended) for state in self._states.values())

    @property
    def is_fine(self) -> bool:
        """Whether no query was given up."""
        return not any(map(self._is_given_up, self._states))

    def begin(self) -> list[RestartEffect]:
        """Start all that need not wait for others."""
        for name, feeders in self._feeders.items():
            if feeders:
                self._states[name] = Held(tuple(sorted(feeders)))
        starting = (name for name, state in self._states.items() if isinstance(state, Starting))
        return [StartRun(name) for name in starting]

    def started(self, name: str, now: float) -> list[RestartEffect]:
        """A query runs."""
        assert isinstance(self._states[name], Starting)
        self._states[name] = Running(now)
        return [StopRun(name)] if self._is_stopping else []

    def ended(self, name: str, *, has_moved: bool = False) -> list[RestartEffect]:
        """A query has come to its end, was stopped, or was not started because all stop."""
        assert isinstance(self._states[name], Starting | Running)
        self._states[name] = Ended()
        self._failures[name] = 0
        if has_moved:
            self._moved.add(name)
        return self._go_round(name) or self._go_on()

    def failed(self, name: str, failure: Failure, now: float) -> list[RestartEffect]:
        """A query could not be started, or broke off."""
        state = self._states[name]
        assert isinstance(state, Starting | Running)
        self._failures[name] = self._count(state, self._failures[name], now)
        if failure.is_final or self._failures[name] >= self._policy.tries_max:
            self._states[name] = Ended(failure.line)
            return [Report(name, failure.line), *self._go_on()]
        if self._is_stopping:
            self._states[name] = Ended()
            return [Report(name, failure.line)]
        wait = self._wait_seconds(self._failures[name])
        self._states[name] = Waiting(now + wait, failure.line)
        return [Report(name, _starts_again(failure, wait))]

    def tick(self, now: float) -> list[RestartEffect]:
        """Start those again whose time has come; first of all the session."""
        match self._session:
            case Waiting() if self._session.until <= now and not self.is_over:
                self._session = Starting()
                return [OpenSession()]
            case Waiting() | Starting():
                return []
            case Running():
                pass
        effects: list[RestartEffect] = []
        for name, state in self._states.items():
            if isinstance(state, Waiting) and state.until <= now:
                self._states[name] = Starting()
                effects.append(StartRun(name))
        return effects

    def stop(self) -> list[RestartEffect]:
        """Have all queries stop, and start none any more."""
        self._is_stopping = True
        effects: list[RestartEffect] = []
        for name, state in self._states.items():
            match state:
                case Running():
                    effects.append(StopRun(name))
                case Waiting() | Held():
                    self._states[name] = Ended()
                case Starting() | Ended():
                    pass
        return effects

    # The session.

    def lost(self, failure: Failure, now: float) -> list[RestartEffect]:
        """The session is gone, and all that ran in it, or it could not be opened."""
        self._session_failures = self._count(self._session, self._session_failures, now)
        is_hopeless = failure.is_final or self._session_failures >= self._policy.tries_max
        left = [name for name, state in self._states.items() if not isinstance(state, Ended)]
        if is_hopeless or self._is_stopping:
            end = Ended(None if self._is_stopping else failure.line)
            self._states |= dict.fromkeys(left, end)
            return [Report(SPARK, failure.line)]
        wait = self._wait_seconds(self._session_failures)
        self._session = Waiting(now + wait, failure.line)
        for name in left:
            if isinstance(self._states[name], Starting | Running):
                self._states[name] = Waiting(self._session.until, failure.line)
        return [Report(SPARK, _starts_again(failure, wait))]

    def opened(self, now: float) -> list[RestartEffect]:
        """There is a session again."""
        assert isinstance(self._session, Starting)
        self._session = Running(now)
        return []

    # Those that feed each other.

    def _go_round(self, name: str) -> list[RestartEffect]:
        """Start a circle once more when all of it has ended and something has moved."""
        circle = sorted(self._circles[name])
        has_ended = all(self._states[each] == Ended() for each in circle)
        if self._is_stopping or not has_ended or self._moved.isdisjoint(circle):
            return []
        self._moved.difference_update(circle)
        self._states |= dict.fromkeys(circle, Starting())
        return [StartRun(each) for each in circle]

    def _go_on(self) -> list[RestartEffect]:
        """Start those that were held for no other reason, or give them up."""
        effects: list[RestartEffect] = []
        for name, state in self._states.items():
            if not isinstance(state, Held):
                continue
            lost = next(filter(self._is_given_up, state.feeders), None)
            if lost is not None:
                reason = f"it is not started: query {lost}, which feeds it, was given up"
                self._states[name] = Ended(reason)
                effects.append(Report(name, reason))
            elif all(isinstance(self._states[each], Ended) for each in state.feeders):
                self._states[name] = Starting()
                effects.append(StartRun(name))
        return effects

    def _is_given_up(self, name: str) -> bool:
        state = self._states[name]
        return isinstance(state, Ended) and state.reason is not None

    # Waiting.

    def _count(self, state: RestartState, failures: int, now: float) -> int:
        """Return how often in a row something has failed, this time included."""
        is_well = isinstance(state, Running) and now - state.since >= self._policy.well_seconds
        return 1 if is_well else failures + 1

    def _wait_seconds(self, failures: int) -> float:
        """Return between half and all of a wait that doubles: queries that fell together part."""
        policy = self._policy
        # The exponent is bounded as the wait is: a query may fail for months.
        doubled = policy.wait_seconds_min * 2.0 ** min(failures - 1, 60)
        return min(doubled, policy.wait_seconds_max) * (0.5 + 0.5 * self._chance())


def _starts_again(failure: Failure, wait: float) -> str:
    return f"{failure.line.rstrip('.')}; it starts again in {wait:.1f} s"
