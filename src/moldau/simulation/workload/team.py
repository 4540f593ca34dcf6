"""The team of all clients: their processes are started, killed now and then, and ended."""

from collections.abc import Sequence
from random import Random
from typing import Final

from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.machine import Process
from moldau.simulation.workload.client import WorkloadClient
from moldau.simulation.world import World

CLIENTS_PER_MACHINE: Final = 4
ABSENCE_SECONDS_MAX: Final = 4.0


class Team:
    """Clients, each in a process of its own."""

    def __init__(
        self,
        world: World,
        clients: Sequence[WorkloadClient],
        random: Random,
        *,
        life_seconds: float,
    ) -> None:
        self.clients = clients
        self.kills = 0
        """How many client processes were killed."""
        self._world = world
        self._random = random
        self._life_seconds = life_seconds
        self._is_ending = False

    def begin(self) -> None:
        """Start all clients."""
        for number, client in enumerate(self.clients):
            self._start(number, client)

    def end(self) -> None:
        """Kill no client any more, and have each end when its operations have."""
        self._is_ending = True
        for client in self.clients:
            client.is_ending = True

    def spare(self) -> None:
        """Kill no client any more."""
        self._is_ending = True

    @property
    def is_alive(self) -> bool:
        """Whether any client has not ended."""
        return any(each.process is not None and each.process.is_alive for each in self.clients)

    def _start(self, number: int, client: WorkloadClient) -> None:
        machine = self._world.machine(f"client-{number // CLIENTS_PER_MACHINE + 1}")

        async def live() -> None:
            try:
                await client.live()
            except LawViolation as violation:
                self._world.violate(str(violation))
            except Exception as error:  # noqa: BLE001 - any other is the client's own fault
                if not process.is_revoked:  # else it is unwound, and cannot wait for anything
                    self._world.violate(f"{client.writer} has failed: {error!r}")

        client.process = process = machine.start(live, name=client.name)
        life = self._random.expovariate(1 / self._life_seconds)
        self._world.after(life, lambda: self._kill(number, client, process))

    def _kill(self, number: int, client: WorkloadClient, process: Process) -> None:
        if self._is_ending:
            return
        self.kills += 1
        process.kill()
        absence = self._random.random() * ABSENCE_SECONDS_MAX
        self._world.after(absence, lambda: self._start(number, client))
