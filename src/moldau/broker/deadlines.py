"""What gives up waiting at its time: many that wait, one timer."""

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from moldau.broker.ports import Environment, Timer

CROWD_MIN: Final = 64
"""With so many it may be worth looking for those that are done."""


class Expiring(Protocol):
    """Something that waits."""

    is_done: bool
    """Whether it waits no longer."""

    def expire(self) -> None:
        """Its time is up."""


class Appending(Expiring, Protocol):
    """Something that is mostly done before its turn ends."""

    deadline: float
    """When its time is up, on the monotonic clock."""


class ExpiryQueue:
    """Those that wait, by when they give up.

    Nearly all are done long before. One that is done says so in `is_done` and nowhere else: it is
    left out when there are twice as many as the last time that all were looked at.
    """

    __slots__ = ("_crowd", "_environment", "_heap", "_number", "_timer", "_timer_at", "fresh")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._heap: list[tuple[float, int, Expiring]] = []
        self.fresh: list[Appending] = []
        """Those of this turn; connections append to it by themselves."""
        self._number = 0
        self._crowd = CROWD_MIN
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        waiting = [*(what for _, _, what in self._heap), *self.fresh]
        return sum(not what.is_done for what in waiting)

    def add(self, at: float, what: Expiring) -> None:
        """Have something expire at a (monotonic) time, unless it is done by then."""
        self._number += 1
        heappush(self._heap, (at, self._number, what))
        if len(self._heap) > self._crowd:
            self._heap = [entry for entry in self._heap if not entry[2].is_done]
            heapify(self._heap)
            self._crowd = max(CROWD_MIN, 2 * len(self._heap))
        if self._timer is None or at < self._timer_at:
            self._set_timer(at)

    def settle(self) -> None:
        """Take in what is not done at the end of a turn; a shell calls it."""
        fresh = self.fresh
        if fresh:
            for what in fresh:
                if not what.is_done:
                    self.add(what.deadline, what)
            del fresh[:]

    def expire_all(self) -> None:
        """Wait no longer for anything that is here."""
        self.settle()
        heap, self._heap = self._heap, []
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
            if not what.is_done:
                what.expire()
        if self._heap:
            self._set_timer(self._heap[0][0])
