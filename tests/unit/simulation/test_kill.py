"""A killed process has no effect any more, whatever unwinds in it."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from moldau.kernel.disk import DiskMissingError
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.simulation.machine import Process, ProcessState
from moldau.simulation.world import ViolationError, World
from tests.unit.simulation.virtual_echo import Server, connect, until

Kill = Callable[[Process], None]

KILLS: dict[str, Kill] = {
    "kill": lambda process: process.kill(),
    "power": lambda process: process.machine.lose_power(),
}


def environment() -> Any:
    return asyncio.get_running_loop().environment


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS)
def test_a_finally_that_writes_has_no_effect(world: World, kill: Kill):
    unwound = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        here = environment()
        disk = here.open_disk("/data")
        disk.append("before", [b"x"])
        disk.sync("before")
        disk.sync_directory("")
        transport = await connect()
        transport.write(b"before")

        async def plant(number: int) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                unwound.append(number)
                transport.write(b"after")
                transport.close()
                loop.call_soon(transport.write, b"after")
                here.threads(1, "test").start(lambda: disk.append("thread", [b"x"]))
                disk.append("after", [b"x"])

        async def generate():
            try:
                yield
            finally:
                unwound.append("generator")
                disk.append("after", [b"x"])

        generator = generate()
        await anext(generator)
        await asyncio.gather(*(plant(number) for number in range(3)))

    server = Server(world)
    client = world.machine("client").start(program)
    world.run(seconds=5)
    kill(client)
    assert client.state is ProcessState.KILLED
    assert sorted(each for each in unwound if each != "generator") == [0, 1, 2]
    gc.collect()
    world.run(seconds=5)
    disk = client.machine.disk("/data")
    assert disk.list("") == ["before"]
    assert server.protocols[0].data == b"before"


def test_peers_hear_of_a_killed_process_and_not_of_lost_power(world: World):
    server = Server(world)

    async def program() -> None:
        await connect()
        await asyncio.Event().wait()

    killed, dark = (world.machine(name).start(program) for name in ("killed", "dark"))
    world.run(seconds=5)
    killed.kill()
    dark.machine.lose_power()
    world.run(seconds=60)
    assert sorted(protocol.told[1:] for protocol in server.protocols) == [[], ["eof", "lost"]]


def test_a_host_that_is_back_knows_no_connections(world: World):
    told = []

    async def program() -> None:
        transport = await connect()
        told.append(transport.get_protocol())
        await asyncio.sleep(10)
        transport.write(b"are you there?")
        await until(lambda: len(told[0].told) > 1)

    server = Server(world)
    client = world.machine("client").start(program)
    world.at(5, server.machine.lose_power)
    world.at(30, server.machine.boot)
    world.run(seconds=29)
    assert told[0].told == ["made"]
    world.run(seconds=10)
    assert told[0].told == ["made", ConnectionResetError]
    assert client.error is None


def test_a_kill_leaves_the_page_cache_and_lost_power_does_not(world: World):
    async def program() -> None:
        disk = environment().open_disk("/data")
        disk.make_directory("synced")
        disk.sync_directory("")
        for number in range(20):
            disk.append(f"synced/{number}", [b"x"])
        await asyncio.Event().wait()

    machine = world.machine("here")
    process = machine.start(program)
    world.run(seconds=1)
    process.kill()
    assert len(machine.disk("/data").list("synced")) == 20
    machine.lose_power()
    assert len(machine.disk("/data").list("synced")) < 20


def test_power_that_goes_in_an_operation_ends_all_processes_before_it_unwinds(world: World):
    machine = world.machine("client")
    unwound = []

    async def write() -> None:
        disk = environment().open_disk("/data")
        transport = await connect()
        try:
            for _ in range(1000):
                disk.append("log", [b"x"])
                await asyncio.sleep(0.01)
        finally:
            unwound.append(1)
            transport.write(b"after")

    async def idle() -> None:
        await asyncio.sleep(1000)

    server = Server(world)
    processes = [machine.start(write), machine.start(idle)]
    machine.disk("/data").lose_power(after=50)
    world.run(seconds=60)
    assert unwound
    assert [process.state for process in processes] == [ProcessState.KILLED] * 2
    assert not server.protocols[0].data
    assert not machine.host.is_up
    machine.boot()
    with pytest.raises(DiskMissingError):
        machine.disk("/data").size("other")


def test_a_thread_of_a_killed_process_never_runs(world: World):
    ran = []

    async def program() -> None:
        environment().threads(1, "test").start(lambda: ran.append(1))
        await asyncio.sleep(1000)

    process = world.machine("here").start(program)
    world.run_until(lambda: world.scheduler.steps >= 2, seconds=1)
    process.kill()
    world.run(seconds=10)
    assert not ran


def test_the_next_process_has_the_directory(world: World):
    async def program() -> str:
        here = environment()
        try:
            here.lock_directory("/data")
        except DirectoryInUseError as error:
            return str(error)
        await asyncio.sleep(100)
        return "had it"

    machine = world.machine("here")
    first, second = machine.start(program), machine.start(program)
    world.run(seconds=10)
    assert [first.result, second.result] in (
        ["/data: the log directory is in use by process here/2", None],
        [None, "/data: the log directory is in use by process here/1"],
    )
    machine.kill()
    third = machine.start(program)
    world.run(seconds=200)
    assert third.result == "had it"


def test_a_program_that_ends_cancels_what_it_leaves(world: World):
    told = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            told.append("cancelled")

    async def program() -> str:
        asyncio.get_running_loop().create_task(work())
        await asyncio.sleep(1)
        return "done"

    process = world.machine("here").start(program)
    world.run(seconds=5)
    assert (process.state, process.result, told) == (ProcessState.ENDED, "done", ["cancelled"])


def test_a_process_kills_another_and_goes_on(world: World):
    async def forever() -> None:
        await asyncio.sleep(1000)

    victim = world.machine("there").start(forever)

    async def program() -> str:
        victim.kill()
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1)
        return loop.name

    process = world.machine("here").start(program)
    world.run(seconds=5)
    assert (victim.state, process.result) == (ProcessState.KILLED, "here/1")


def test_what_waits_while_it_unwinds_is_unwound_from_there(world: World):
    unwound = []

    async def program() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            try:
                await asyncio.sleep(1)
            finally:
                unwound.append("inner")
                await asyncio.sleep(1)

    process = world.machine("here").start(program)
    world.run(seconds=1)
    process.kill()
    assert unwound == ["inner"]
    gc.collect()
    world.run(seconds=1)


class Careless:
    """Fails when it is no more needed, and writes."""

    def __init__(self, error: Exception | None = None) -> None:
        self._disk = environment().open_disk("/data")
        self._error = error

    def __del__(self) -> None:
        if self._error is not None:
            raise self._error
        self._disk.append("after", [b"x"])


def test_a_destructor_of_a_killed_process_has_no_effect(world: World):
    async def program() -> None:
        careless = Careless()
        await asyncio.sleep(1000)
        del careless

    process = world.machine("here").start(program)
    world.run(seconds=1)
    process.kill()
    gc.collect()
    world.run(seconds=1)
    assert not process.machine.disk("/data").list("")


def test_a_destructor_that_fails_is_a_violation(world: World):
    async def program() -> None:
        careless = Careless(ValueError("broken"))
        await asyncio.sleep(1)
        del careless

    world.machine("here").start(program)
    with pytest.raises(ViolationError, match="broken"):
        world.run(seconds=2)
