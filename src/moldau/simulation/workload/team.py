"""The team of all clients: their processes are started, killed, and ended."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.workload.client import WorkloadClient
from moldau.simulation.world import World

CLIENTS_PER_MACHINE: Final = 4


class Team:
    """Clients, each in a process of its own."""

    def __init__(self, world: World, clients: Sequence[WorkloadClient]) -> None:
        self.clients = clients
        self._world = world

    def begin(self) -> None:
        """Start all clients."""
        for number, client in enumerate(self.clients):
            self._start(number, client)

    def end(self) -> None:
        """Have each client end when its operations have."""
        for client in self.clients:
            client.is_ending = True

    def machine_of(self, number: int) -> str:
        """Return the name of the machine that a client runs on, by the client's number."""
        return f"client-{number // CLIENTS_PER_MACHINE + 1}"

    def kill(self, name: str, absence_seconds: float) -> None:
        """Kill a client, and start it again; nothing if it is away."""
        for number, client in enumerate(self.clients):
            process = client.process
            if client.name == name and process is not None and process.is_alive:
                process.kill()
                self._world.after(absence_seconds, partial(self._start, number, client))

    @property
    def is_alive(self) -> bool:
        """Whether any client has not ended."""
        return any(each.process is not None and each.process.is_alive for each in self.clients)

    def _start(self, number: int, client: WorkloadClient) -> None:
        machine = self._world.machine(self.machine_of(number))

        async def live() -> None:
            try:
                await client.live()
            except LawViolation as violation:
                self._world.violate(str(violation))
            except Exception as error:  # noqa: BLE001 - any other is the client's own fault
                if not process.is_revoked:  # else it is unwound, and cannot wait for anything
                    self._world.violate(f"{client.writer} has failed: {error!r}")

        client.process = process = machine.start(live, name=client.name)
