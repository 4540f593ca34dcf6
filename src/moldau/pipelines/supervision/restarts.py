"""When queries are started, started again and given up: a machine without threads or clocks.

| a query is | and this happens | so it becomes |
|---|---|---|
| Starting | it has started | Running |
| Running, Starting | it fails, and may do better next time | Waiting, for longer each time |
| Running, Starting | it fails, as it would again | Ended, with the reason |
| Running, Starting | it ends by itself, or was stopped | Ended |
| Waiting | the time has come | Starting |
| Waiting | all are to stop | Ended |

What happens to one query changes nothing for the others.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from moldau.pipelines.supervision.failures import Failure


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


RestartState: TypeAlias = Starting | Running | Waiting | Ended


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
class Report:
    """Tell whoever runs the app."""

    name: str
    line: str


RestartEffect: TypeAlias = StartRun | StopRun | Report


class Restarts:
    """Decides for all queries of an app; each method returns what is to be done.

    Times are seconds of any clock that does not go back; `chance` returns numbers from 0 to 1.
    """

    def __init__(self, names: Iterable[str], policy: Policy, chance: Callable[[], float]) -> None:
        self._policy = policy
        self._chance = chance
        self._states: dict[str, RestartState] = dict.fromkeys(names, Starting())
        self._failures = dict.fromkeys(self._states, 0)
        self._is_stopping = False

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
        return all(
            state.reason is None for state in self._states.values() if isinstance(state, Ended)
        )

    def begin(self) -> list[RestartEffect]:
        """Start all."""
        return [StartRun(name) for name in self._states]

    def started(self, name: str, now: float) -> list[RestartEffect]:
        """A query runs."""
        assert isinstance(self._states[name], Starting)
        self._states[name] = Running(now)
        return [StopRun(name)] if self._is_stopping else []

    def ended(self, name: str) -> list[RestartEffect]:
        """A query has come to its end, was stopped, or was not started because all stop."""
        assert isinstance(self._states[name], Starting | Running)
        self._states[name] = Ended()
        return []

    def failed(self, name: str, failure: Failure, now: float) -> list[RestartEffect]:
        """A query could not be started, or broke off."""
        state = self._states[name]
        assert isinstance(state, Starting | Running)
        if isinstance(state, Running) and now - state.since >= self._policy.well_seconds:
            self._failures[name] = 0
        self._failures[name] += 1
        if failure.is_final or self._failures[name] >= self._policy.tries_max:
            self._states[name] = Ended(failure.line)
            return [Report(name, failure.line)]
        if self._is_stopping:
            self._states[name] = Ended()
            return [Report(name, failure.line)]
        wait = self._wait_seconds(self._failures[name])
        self._states[name] = Waiting(now + wait, failure.line)
        return [Report(name, f"{failure.line.rstrip('.')}; it starts again in {wait:.1f} s")]

    def tick(self, now: float) -> list[RestartEffect]:
        """Start those again whose time has come."""
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
                case Waiting():
                    self._states[name] = Ended()
                case Starting() | Ended():
                    pass
        return effects

    def _wait_seconds(self, failures: int) -> float:
        """Return between half and all of a wait that doubles: queries that fell together part."""
        policy = self._policy
        # The exponent is bounded as the wait is: a query may fail for months.
        doubled = policy.wait_seconds_min * 2.0 ** min(failures - 1, 60)
        return min(doubled, policy.wait_seconds_max) * (0.5 + 0.5 * self._chance())
