"""What can go wrong with a broker, when a test wants it to."""

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from moldau.broker.served import HANDLERS
from moldau.kernel.durations import Duration, seconds_of
from moldau.protocol.errors import ErrorCode
from moldau.runtime.free_space import FreeSpace, Thresholds
from moldau.testing.request_faults import (
    DelayAnswer,
    DropAnswer,
    DropRequest,
    Fail,
    FaultEffect,
    Rule,
)
from moldau.testing.running import BrokerLoop

_NO_ROOM: Final = Thresholds(low_bytes=1 << 62, reserve_bytes=1 << 62, slack_bytes=0)


class Fault:
    """Something that goes wrong until it is undone; `with` undoes it at the block's end."""

    def __init__(self, rule: Rule, undo: Callable[[], None]) -> None:
        self._rule = rule
        self._undo = undo

    @property
    def hits(self) -> int:
        """How many requests it has hit."""
        return self._rule.hits

    def undo(self) -> None:
        """Let everything go its way again; what was hit stays so."""
        self._undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.undo()


class Faults:
    """Faults on demand.

    An API is named as Kafka names it: "Produce", "Fetch", "Metadata". Requests are counted from
    when the fault is made: `nth=2` leaves the next one alone; `times=None` never stops. If several
    faults fit a request, the oldest one hits it.
    """

    def __init__(self, running: BrokerLoop) -> None:
        self._running = running

    def drop(self, api: str, *, nth: int = 1, times: int | None = 1, hang_up: bool = True) -> Fault:
        """Lose a request before the broker sees it: nothing happens, and no answer comes.

        The connection is closed, as by a network that fails; with `hang_up=False` it stays open,
        and the client waits until its own timeout.
        """
        return self._add(api, DropRequest(hang_up), nth, times)

    def drop_response(
        self, api: str, *, nth: int = 1, times: int | None = 1, hang_up: bool = True
    ) -> Fault:
        """Do what was asked, and lose the answer: what a retry must not do twice.

        The connection is closed; with `hang_up=False` it stays open, and the client waits.
        """
        return self._add(api, DropAnswer(hang_up), nth, times)

    def delay(self, api: str, *, by: Duration, nth: int = 1, times: int | None = 1) -> Fault:
        """Do what was asked at once, and answer later. `clock.advance` moves this, too."""
        return self._add(api, DelayAnswer(seconds_of(by)), nth, times)

    def fail(
        self, api: str, *, error: str | ErrorCode, nth: int = 1, times: int | None = 1
    ) -> Fault:
        """Answer with an error of Kafka's, for all topics and partitions of the request.

        Nothing of what was asked is done: a Produce that fails so has appended nothing.
        """
        return self._add(api, Fail(_error(error)), nth, times)

    def close_connections(self) -> None:
        """Cut all connections; clients may connect again at once."""
        self._running.call(self._running.hosted.listener.cut())

    @contextmanager
    def refuse_connections(self) -> Iterator[None]:
        """Cut all connections and refuse new ones until the block ends."""
        self._running.call(self._running.hosted.listener.refuse())
        try:
            yield
        finally:
            if self._running.is_here:
                self._running.call(self._running.hosted.listener.accept())

    @contextmanager
    def fill_disk(self) -> Iterator[None]:
        """Refuse records for want of room until the block ends; a restart ends it as well.

        Metadata and deletes go on, for which a broker keeps a reserve (docs/faults.md).
        """
        logs = self._running.hosted.node.logs

        async def fill() -> list[FreeSpace | None]:
            before = [host.space for host in logs.hosts]
            for host in logs.hosts:
                logs.use_space(host, FreeSpace(_NO_ROOM, free_bytes=0))
            return before

        async def empty(before: list[FreeSpace | None]) -> None:
            for host, space in zip(logs.hosts, before, strict=True):
                logs.use_space(host, space)

        before = self._running.call(fill())
        try:
            yield
        finally:
            if self._running.is_here:
                self._running.call(empty(before))

    def clear(self) -> None:
        """Undo all faults of requests and answers."""

        async def clear() -> None:
            self._running.hosted.rules.rules.clear()

        self._running.call(clear())

    def _add(self, api: str, effect: FaultEffect, nth: int, times: int | None) -> Fault:
        if nth < 1:
            raise ValueError(f"nth={nth}: requests are counted from 1")
        if times is not None and times < 1:
            raise ValueError(f"times={times}: a fault happens at least once; None is always")
        rule = Rule(_api_key(api), effect, nth, times)
        rules = self._running.hosted.rules.rules

        async def add() -> None:
            rules.append(rule)

        async def remove() -> None:
            if rule in rules:
                rules.remove(rule)

        def undo() -> None:
            if self._running.is_here:
                self._running.call(remove())

        self._running.call(add())
        return Fault(rule, undo)


def _api_key(name: str) -> int:
    keys = {served.api.name: key for key, served in HANDLERS.items()}
    if name not in keys:
        raise ValueError(f"{name!r} is no API that this broker serves{_hint(name, keys)}")
    return keys[name]


def _error(error: str | ErrorCode) -> ErrorCode:
    if isinstance(error, ErrorCode):
        code = error
    elif error in ErrorCode.__members__:
        code = ErrorCode[error]
    else:
        raise ValueError(f"{error!r} is no error of Kafka's{_hint(error, ErrorCode.__members__)}")
    if code is ErrorCode.NONE:
        raise ValueError("NONE is no error")
    return code


def _hint(name: str, known: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=3)
    if not close:
        return ""
    return f"; did you mean {' or '.join(by_lower[each] for each in close)}?"
