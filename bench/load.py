"""Costs of a load, for the broker and for its client, as sums that can be added."""

from collections.abc import Callable
from dataclasses import dataclass

Drive = Callable[[float], "Load"]
"""Puts a broker under load for so many seconds."""


@dataclass(frozen=True, slots=True)
class Load:
    """Costs of a load, as far as its client tells."""

    count: float = 0
    """Requests, records or transactions, whichever the client counts."""
    size: float = 0
    """Bytes of the batches."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """User and system time of the broker's process."""
    client_cpu_seconds: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    received: float = 0
    """Records that consumers beside the load received."""

    def __add__(self, other: "Load") -> "Load":
        """Add another run; of the latencies, which cannot be added, the worse remain."""
        return Load(
            self.count + other.count,
            self.size + other.size,
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.client_cpu_seconds + other.client_cpu_seconds,
            max(self.p50_us, other.p50_us),
            max(self.p99_us, other.p99_us),
            self.received + other.received,
        )

    @property
    def megabytes_per_second(self) -> float:
        return self.size / 1e6 / self.seconds

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def received_per_second(self) -> float:
        return self.received / self.seconds

    @property
    def cpu_seconds_per_gb(self) -> float:
        return self.cpu_seconds / (self.size / 1e9)

    @property
    def client_cpu_seconds_per_gb(self) -> float:
        return self.client_cpu_seconds / (self.size / 1e9)

    @property
    def cpu_us_per_count(self) -> float:
        return self.cpu_seconds / self.count * 1e6


def repeat(step: Drive, seconds: float) -> Load:
    """Take as many steps as the time needs; each is told how much is left."""
    total = Load()
    while total.seconds < seconds:
        total += step(seconds - total.seconds)
    return total
