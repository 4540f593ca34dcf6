"""How fast compaction may read and write: `log.cleaner.io.max.bytes.per.second`."""

from typing import Final

from moldau.kernel.clock import Instant

BURST_SECONDS: Final = 0.3


class Throttle:
    """A bucket of bytes that fills with time; what runs ahead of it has to wait.

    It holds the bytes of `BURST_SECONDS`, so that a pause is not made up for at full speed.
    """

    __slots__ = ("_bytes_left", "_bytes_per_second", "_filled_at")

    def __init__(self, bytes_per_second: float, now: Instant) -> None:
        assert bytes_per_second > 0, bytes_per_second
        self._bytes_per_second = bytes_per_second
        self._bytes_left = bytes_per_second * BURST_SECONDS
        self._filled_at = now.monotonic

    def spend(self, size: int, now: Instant) -> float:
        """Count `size` bytes that were read or written; return how many seconds to wait now."""
        rate = self._bytes_per_second
        filled = self._bytes_left + (now.monotonic - self._filled_at) * rate
        self._bytes_left = min(filled, rate * BURST_SECONDS) - size
        self._filled_at = now.monotonic
        return max(0.0, -self._bytes_left / rate)
