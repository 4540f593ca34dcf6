"""Deadlines that move often: a timer that fires looks at them, and is not set again each time."""

from collections.abc import Hashable, Sequence

from moldau.coordination.decision import Effect, SetTimer
from moldau.kernel.clock import Instant


class TimerDeadlines:
    """When what is due (monotonic), by the key of its timer. Soft state."""

    def __init__(self) -> None:
        self._due: dict[Hashable, float] = {}
        self._timers: dict[Hashable, float] = {}

    def set(self, key: Hashable, at: float) -> Sequence[Effect]:
        """Have something due, later or earlier than it was; return the timer that it needs."""
        self._due[key] = at
        timer = self._timers.get(key)
        if timer is not None and timer <= at:
            return ()
        self._timers[key] = at
        return (SetTimer(key, at),)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._due

    def clear(self, key: Hashable) -> None:
        """Have something not due any more; its timer fires for nothing."""
        self._due.pop(key, None)

    def fired(self, key: Hashable, now: Instant) -> Sequence[Effect] | None:
        """Return None if it is due now, else what its timer leads to."""
        self._timers.pop(key, None)
        at = self._due.get(key)
        if at is None:
            return ()
        if at > now.monotonic:
            return self.set(key, at)
        del self._due[key]
        return None
