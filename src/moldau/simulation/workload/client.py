"""A client of the workload: one program that is started again whenever its process has ended."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final

from moldau.client.errors import ClientError
from moldau.simulation.workload.ledger import WorkloadLedger

if TYPE_CHECKING:
    from moldau.simulation.machine import Process

QUICK: Final[Mapping[str, object]] = {
    "request.timeout.ms": 5_000,
    "default.api.timeout.ms": 8_000,
    "socket.connection.setup.timeout.ms": 3_000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
}
"""Settings of all clients: what a broker does not answer is asked again soon."""


class WorkloadClient(ABC):
    """One client, over all processes that it lives in; at most one of them is alive."""

    kind: ClassVar[str]
    """Its operations' name in counts."""

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        self.name = name
        self.ledger = ledger
        self.random = random
        self.pause_seconds = 1.5
        """How long it rests between operations, on average."""
        self.is_ending = False
        """Whether it was asked to end."""
        self.acknowledged_at = -1.0
        """When its last operation was acknowledged, by the world's time."""
        self.process: Process | None = None
        """The last process that it has lived in."""
        self._servers = servers
        self._lives = 0
        self._values = 0

    @property
    def writer(self) -> str:
        """Its name in this process."""
        return f"{self.name}.{self._lives}"

    async def live(self) -> None:
        """Work until it is asked to end; what fails is begun anew."""
        self._lives += 1
        while not self.is_ending:
            try:
                await self.work()
            except ClientError:
                await asyncio.sleep(0.2 + 0.3 * self.random.random())

    @abstractmethod
    async def work(self) -> None:
        """Do operations until `is_ending`; a `ClientError` ends a session."""

    def acknowledge(self, count: int = 1) -> None:
        """Count operations that were acknowledged just now."""
        if count:
            self.ledger.acknowledged[self.kind] += count
            self.acknowledged_at = self.ledger.now

    async def rest(self) -> None:
        """Rest between two operations."""
        if not self.is_ending:
            await asyncio.sleep(self.random.expovariate(1 / self.pause_seconds))

    def value(self) -> bytes:
        """Return a value that no other record has."""
        self._values += 1
        return b"%s.%d" % (self.writer.encode(), self._values)
