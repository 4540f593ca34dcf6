"""What gives up waiting at its time: many that wait, one timer."""

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from moldau.broker.ports import Environment, Timer

DONE_MIN: Final = 64
"""So many may be done with and still be here before it is worth looking for them."""


class Expiring(Protocol):
    """Something that waits."""

    is_done: bool
    """Whether it waits no longer."""

    def expire(self) -> None:
        """Its time is up."""


class Deadlines:
    """Those that wait, by when they give up.

    Nearly all are done long before: they say so in passing, and are left out in one sweep when
    most of what is here is done.
    """

    __slots__ = ("_done", "_environment", "_heap", "_number", "_timer", "_timer_at")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._heap: list[tuple[float, int, Expiring]] = []
        self._number = 0
        self._done = 0
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        return len(self._heap) - self._done

    def add(self, at: float, what: Expiring) -> None:
        """Have something expire at a (monotonic) time, unless it is done by then."""
        self._number += 1
        heappush(self._heap, (at, self._number, what))
        if self._timer is None or at < self._timer_at:
            self._set_timer(at)

    def done(self) -> None:
        """One of those here is done."""
        self._done += 1
        if self._done > DONE_MIN and self._done * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].is_done]
            heapify(self._heap)
            self._done = 0

    def expire_all(self) -> None:
        """Wait no longer for anything that is here."""
        heap, self._heap = self._heap, []
        self._done = 0
        for _, _, what in heap:
            if not what.is_done:
                what.expire()

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._environment.at(at, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._environment.now().monotonic
        while self._heap and (self._heap[0][2].is_done or self._heap[0][0] <= now):
            what = heappop(self._heap)[2]
            if what.is_done:
                self._done -= 1
            else:
                what.expire()
        if self._heap:
            self._set_timer(self._heap[0][0])
