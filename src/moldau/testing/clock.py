"""The broker's clock in a test's hands."""

from datetime import UTC, datetime, timedelta

from moldau.kernel.durations import Duration, seconds_of
from moldau.testing.running import BrokerLoop

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """The time that the broker goes by; that of the test and of its clients stays what it is."""

    def __init__(self, running: BrokerLoop) -> None:
        self._running = running

    def now(self) -> datetime:
        """Return the broker's time of day, in UTC."""
        return _EPOCH + timedelta(milliseconds=self._running.hosted.environment.now().wall_ms)

    def advance(self, by: Duration) -> None:
        """Move the broker's time forward: `"7 days"`, `"200 ms"`, a `timedelta`, or seconds.

        What becomes due by that happens now and in its order: long polls and requests time out,
        idle connections are closed, producers' ids and segments expire, deleted files go. In the
        end retention, compaction and the like have their turn, whatever their intervals are, and
        are done when this returns.
        """
        seconds = seconds_of(by)
        self._running.call(self._running.hosted.advance(seconds))
