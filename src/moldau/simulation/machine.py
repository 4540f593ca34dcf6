"""Machines of a world, and the processes on them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any, Final

from moldau.runtime.node import Node, StartRefusedError
from moldau.simulation.clock import MachineClock
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.environment import SimulatedEnvironment
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.scheduler import SECOND
from moldau.simulation.transport import SimulatedTransport
from moldau.simulation.virtual_socket import VirtualSocket

if TYPE_CHECKING:
    from moldau.simulation.network import NetworkHost, VirtualListener
    from moldau.simulation.world import World

BOOT_READING_MAX: Final = 1e6
"""The monotonic clock begins anywhere up to this: its readings mean nothing between boots."""

Main = Callable[[], Coroutine[Any, Any, Any]]


class ProcessState(Enum):
    """How a process fares."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"
    """Its program has returned or raised."""
    KILLED = "killed"
    """It was killed, or its machine has lost power."""


class SimulatedMachine:
    """A host with disks and clocks, which outlive the processes on it."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.host: NetworkHost = world.network.host(name)
        self.clock = MachineClock(world.scheduler)
        """Its clocks, to be set wrong and moved."""
        self.disks: dict[str, SimulatedDisk] = {}
        """By the path of their log directory."""
        self.locks: dict[str, Process] = {}
        """Which process has a log directory."""
        self.processes: list[Process] = []
        """Those that are alive."""
        self.before_disk: Callable[[str, SimulatedDisk], None] | None = None
        """Called with each operation of a process on a disk, by its name, before it is done."""
        self.device_free_ns = 0
        """Until this time of the world calls in threads hang: see `stall`."""
        self._starts = 0
        self._random = world.random(f"machine {name}")
        self._boot()

    @property
    def address(self) -> str:
        """The address on the network; the name is resolved to it."""
        return self.host.address

    def disk(self, root: str) -> SimulatedDisk:
        """Return the disk of a log directory; a new one if there is none."""
        found = self.disks.get(root)
        if found is None:
            found = self.disks[root] = SimulatedDisk(self._random.getrandbits(64))
        return found

    def start(self, program: Main, *, name: str = "") -> "Process":
        """Start a process, which runs `program` on a loop of its own until that returns."""
        return self._start(Process(self, self._name(name)), program)

    def start_node(self, settings: Mapping[str, str]) -> "NodeProcess":
        """Start a node as it ships, by the texts of its settings, `durability` not in memory."""
        process = NodeProcess(self, self._name(""), settings)
        self._start(process, process.run)
        return process

    def kill(self) -> None:
        """Kill all processes, as kill -9 does: what they wrote is in the page cache."""
        for process in list(self.processes):
            process.kill()

    def lose_power(self) -> None:
        """Lose power: processes end, peers hear nothing, and disks keep what was synced."""
        self.world.trace.note(self.name, "power lost")
        for process in list(self.processes):
            process.revoke(is_told=False)
        self.host.lose_power()
        for process in list(self.processes):
            process.kill()
        for _, disk in sorted(self.disks.items()):
            disk.crash()

    def boot(self) -> None:
        """Have power again; nothing runs until it is started."""
        self.world.trace.note(self.name, "boot")
        self._boot()

    def stall(self, seconds: float) -> None:
        """Have all devices hang for so long: what threads wait for comes later."""
        self.device_free_ns = self.world.scheduler.now + int(seconds * SECOND)

    def _boot(self) -> None:
        self.host.is_up = True
        self.device_free_ns = 0
        self.clock.boot(self._random.random() * BOOT_READING_MAX)

    def _name(self, name: str) -> str:
        self._starts += 1
        # No two processes share a stream of chance: what one that is dead draws would show.
        return f"{self.name}/{name}{self._starts}"

    def _start(self, process: "Process", program: Main) -> "Process":
        if not self.host.is_up:
            raise RuntimeError(f"{self.name} has no power")
        self.processes.append(process)
        process.begin(program)
        return process


class Process:
    """A process on a machine: a loop, threads, sockets, and what it has of the disks."""

    def __init__(self, machine: SimulatedMachine, name: str) -> None:
        world = machine.world
        self.machine = machine
        self.name = name
        self.host = machine.host
        self.scheduler = world.scheduler
        self.trace = world.trace
        self.random: Random = world.random(f"process {name}")
        """Chance for this process alone, so that what it does when it is dead disturbs nothing."""
        self.state = ProcessState.RUNNING
        self.result: Any = None
        """What its program has returned."""
        self.error: BaseException | None = None
        """What its program has raised."""
        self.sockets: dict[VirtualSocket, None] = {}
        self.listeners: dict[VirtualListener, None] = {}
        self.reports: list[Callable[[], object]] | None = None
        self.when_resumed: list[Callable[[], object]] = []
        self._task: asyncio.Task[Any] | None = None
        # What is abstract raises: signals, subprocesses, and all that needs sockets of the system.
        self.loop = SimulatedLoop(  # type: ignore[abstract]
            name, world.scheduler, machine.clock, self.random, world.trace, self._violate
        )
        self.environment = self.loop.environment = SimulatedEnvironment(self)

    @property
    def is_alive(self) -> bool:
        """Whether it runs or is paused."""
        return not self.loop.is_revoked

    @property
    def is_revoked(self) -> bool:
        """Whether nothing it does has effect any more."""
        return self.loop.is_revoked

    @property
    def is_paused(self) -> bool:
        """Whether it is stopped for now."""
        return self.state is ProcessState.PAUSED

    @property
    def device_free_ns(self) -> int:
        """When devices work again that hang."""
        return self.machine.device_free_ns

    def begin(self, program: Main) -> None:
        """Run a program from the next turn of the loop on."""
        self.trace.note(self.name, "start")
        self.loop.call_soon(self._begin, program)

    def kill(self) -> None:
        """End it in the middle of what it does; nothing that unwinds afterwards has effect."""
        self.revoke()
        self._bury(ProcessState.KILLED)

    def pause(self) -> None:
        """Stop it as SIGSTOP does; its system goes on taking what arrives."""
        if self.state is ProcessState.RUNNING:
            self.trace.note(self.name, "pause")
            self.state = ProcessState.PAUSED
            self.loop.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self.state is ProcessState.PAUSED:
            self.trace.note(self.name, "resume")
            self.state = ProcessState.RUNNING
            self.loop.resume()
            waiting, self.when_resumed = self.when_resumed, []
            for go_on in waiting:
                go_on()

    def revoke(self, *, is_told: bool = True) -> None:
        """Take disk, network and callbacks from it; its system tells its peers if it can."""
        if self.loop.is_revoked:
            return
        self.trace.note(self.name, "end")
        self.loop.revoke()
        for listener in self.listeners:
            listener.abandon()
        if is_told:
            for socket in self.sockets:
                socket.readable = socket.writable = None
                socket.close(self.scheduler.now)

    def disk_operation(self, kind: str, disk: SimulatedDisk) -> None:
        """Tell of an operation on a disk before it is done."""
        if self.machine.before_disk is not None:
            self.machine.before_disk(kind, disk)

    def die(self) -> None:
        """Be killed in the middle of an operation of its own, as kill -9 does it."""
        self.revoke()
        # The objects on the stack are still in use.
        self.scheduler.after(0, self._bury, ProcessState.KILLED)

    def power_lost(self) -> None:
        """Have the machine lose its power, in the middle of an operation of this process."""
        for process in list(self.machine.processes):
            process.revoke(is_told=False)
        self.machine.host.lose_power()
        self.scheduler.after(0, self.machine.lose_power)

    def transport(self, socket: VirtualSocket) -> SimulatedTransport:
        """Return this process's transport over a socket of its own."""
        network = self.machine.world.network

        def gone() -> None:
            self.sockets.pop(socket, None)

        return SimulatedTransport(self.loop, socket, network.random, gone)

    def _begin(self, program: Main) -> None:
        self._task = self.loop.create_task(self._main(program), name="main")
        self._task.add_done_callback(self._ended)

    async def _main(self, program: Main) -> Any:
        """Run the program, and cancel what it leaves behind, as asyncio.run does."""
        try:
            return await program()
        finally:
            left = [task for task in asyncio.all_tasks(self.loop) if task is not self._task]
            left.sort(key=hash)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _ended(self, main: "asyncio.Task[Any]") -> None:
        if main.cancelled():
            self.error = asyncio.CancelledError()
        elif (error := main.exception()) is not None:
            self.error = error
        else:
            self.result = main.result()
        self.revoke()
        # A turn of this loop runs now, and the objects on the stack are still in use.
        self.scheduler.after(0, self._bury, ProcessState.ENDED)

    def _bury(self, state: ProcessState) -> None:
        if self.state in (ProcessState.RUNNING, ProcessState.PAUSED):
            self.state = state
            self.machine.processes.remove(self)
            self.loop.bury()
            self.sockets.clear()
            self.listeners.clear()

    def _violate(self, text: str) -> None:
        self.machine.world.violate(f"{self.name}: {text}")


class NodeProcess(Process):
    """A node as it ships, run as `moldau start` runs it."""

    def __init__(self, machine: SimulatedMachine, name: str, settings: Mapping[str, str]) -> None:
        super().__init__(machine, name)
        self.settings = dict(settings)
        self.node: Node | None = None
        """The node; white-box laws look into it."""
        self.is_serving = False
        """Whether its start has ended, and no stop has begun."""
        self.refusal: str | None = None
        """Why it would not start, in one line."""
        self.failure: BaseException | None = None
        """Why it could not go on."""
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Have it stop in good order, as SIGTERM does."""
        self.trace.note(self.name, "stop")
        self.loop.call_soon(self._stop.set)

    async def run(self) -> None:
        """Start, serve until it is stopped or fails, stop."""
        node = self.node = Node(dict(self.settings), environment=self.environment)
        try:
            await node.start()
        except StartRefusedError as error:
            self.refusal = str(error)
            return
        self.is_serving = True
        stopping = self.loop.create_task(self._stop.wait())
        await asyncio.wait([stopping, node.failure], return_when=asyncio.FIRST_COMPLETED)
        self.is_serving = False
        if node.failure.done():
            self.failure = node.failure.result()
            node.hurry()
        await node.stop()
