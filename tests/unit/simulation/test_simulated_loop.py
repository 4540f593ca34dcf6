"""A simulated loop keeps asyncio's promises: programs do there what they do on asyncio's own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moldau.simulation.world import ViolationError, World

Program = Callable[[], Coroutine[Any, Any, Any]]


async def callbacks_in_order() -> list[object]:
    told: list[object] = []
    loop = asyncio.get_running_loop()

    def first() -> None:
        told.append(1)
        loop.call_soon(told.append, "later")

    loop.call_soon(first)
    loop.call_soon(told.append, 2)
    cancelled = loop.call_soon(told.append, "never")
    loop.call_soon_threadsafe(told.append, 3)
    cancelled.cancel()
    await asyncio.sleep(0)
    told.append("turn")
    await asyncio.sleep(0)
    return told


async def tasks_in_turns() -> list[str]:
    told = []

    async def work(name: str) -> None:
        for step in range(3):
            told.append(f"{name}{step}")
            await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"), work("c"))
    return told


async def futures_wake_in_order() -> list[str]:
    told: list[str] = []
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(name: str) -> None:
        await future
        told.append(name)

    tasks = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    future.set_result(None)
    told.append("set")
    await asyncio.gather(*tasks)
    return told


async def timers() -> list[object]:
    told: list[object] = []
    loop = asyncio.get_running_loop()
    loop.call_later(0.02, told.append, "late")
    loop.call_later(0.001, told.append, "early")
    loop.call_later(0.003, told.append, "never").cancel()
    loop.call_at(loop.time() + 0.01, told.append, "middle")
    await asyncio.sleep(0.04)
    return told


async def cancellation() -> list[str]:
    told = []

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            told.append("cancelled")
            await asyncio.sleep(0)
            told.append("tidied")
            raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    told.append(str(task.cancel()))
    try:
        await task
    except asyncio.CancelledError:
        told.append("seen")
    return told


async def timeouts() -> list[str]:
    told = []
    try:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
    except TimeoutError:
        told.append("timeout")
    try:
        await asyncio.wait_for(asyncio.sleep(100), 0.01)
    except TimeoutError:
        told.append("wait_for")
    async with asyncio.timeout(10):
        told.append("in time")
    return told


async def task_groups() -> list[str]:
    told = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            told.append(name)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait("a"))
            group.create_task(fail())
    except* ValueError as errors:
        told.append(str(errors.exceptions[0]))
    return told


async def wait_for_the_first() -> list[object]:
    slow = asyncio.create_task(asyncio.sleep(100))
    quick = asyncio.create_task(asyncio.sleep(0, "quick"))
    done, pending = await asyncio.wait([slow, quick], return_when=asyncio.FIRST_COMPLETED)
    slow.cancel()
    return [[task.result() for task in done], pending == {slow}]


async def locks_are_fair() -> list[int]:
    lock, told = asyncio.Lock(), []

    async def work(number: int) -> None:
        async with lock:
            await asyncio.sleep(0)
            told.append(number)

    await asyncio.gather(*(work(number) for number in range(5)))
    return told


async def generators_are_closed() -> list[str]:
    told = []

    async def count():
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            told.append("closed")

    async for _ in count():
        break
    await asyncio.sleep(0.01)
    return told


PROGRAMS: list[Program] = [
    callbacks_in_order,
    tasks_in_turns,
    futures_wake_in_order,
    timers,
    cancellation,
    timeouts,
    task_groups,
    wait_for_the_first,
    locks_are_fair,
    generators_are_closed,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_does_what_it_does_on_asyncios_loop(program: Program, run: Any):
    assert run(program) == asyncio.run(program())


def test_time_jumps_to_what_is_next(world: World, run: Any):
    async def program() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(1000)
        return loop.time() - before

    assert run(program) == pytest.approx(1000, abs=0.1)
    assert world.seconds == pytest.approx(1000, abs=0.1)


def test_timers_of_one_time_come_in_an_order_of_the_seeds():
    async def program() -> str:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        due = loop.time() + 1
        for name in "abc":
            loop.call_at(due, told.append, name)
        await asyncio.sleep(2)
        return "".join(told)

    def order(seed: int) -> str:
        with World(seed) as world:
            process = world.machine("here").start(program)
            world.run(seconds=3)
            return process.result

    assert {order(seed) for seed in range(50)} == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert order(7) == order(7)


def test_drifting_clocks_see_another_time(world: World):
    async def program() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(1000)
        return loop.time() - before

    quick, slow = world.machine("quick"), world.machine("slow")
    quick.clock.drift(ppm=1000)
    slow.clock.drift(ppm=-1000)
    first, second = quick.start(program), slow.start(program)
    world.run_until(lambda: not first.is_alive, seconds=2000)
    assert world.seconds == pytest.approx(1000 / 1.001, abs=0.05)
    world.run_until(lambda: not second.is_alive, seconds=2000)
    assert world.seconds == pytest.approx(1000 / 0.999, abs=0.05)
    assert first.result == pytest.approx(1000, abs=0.05)
    assert second.result == pytest.approx(1000, abs=0.05)


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not(world: World):
    machine = world.machine("here")
    seen = []

    async def program() -> None:
        environment = asyncio.get_running_loop().environment
        for _ in range(2):
            seen.append(environment.now())
            await environment.sleep(1)

    machine.start(program)
    world.at(0.5, lambda: machine.clock.jump(-3_600_000))
    world.run(seconds=3)
    first, second = seen
    assert second.monotonic - first.monotonic == pytest.approx(1, abs=0.05)
    assert second.wall_ms - first.wall_ms == pytest.approx(1000 - 3_600_000, abs=50)


def test_a_paused_process_comes_back_to_what_was_due(world: World):
    told: list[float] = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(5):
            await asyncio.sleep(1)
            told.append(round(loop.environment.now().monotonic - began, 1))

    machine = world.machine("here")
    began = machine.clock.monotonic(0)
    process = machine.start(program)
    world.at(1.5, process.pause)
    world.at(4.5, process.resume)
    world.run(seconds=20)
    assert told == [1.0, 4.5, 5.5, 6.5, 7.5]


@pytest.mark.parametrize("way", ["callback", "task", "future"])
def test_an_error_that_no_code_handles_is_a_violation(world: World, way: str):
    def fail() -> None:
        raise ValueError("broken")

    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        fail()

    async def program() -> None:
        loop = asyncio.get_running_loop()
        if way == "callback":
            loop.call_soon(fail)
        elif way == "task":
            tasks.append(loop.create_task(work()))
        else:
            loop.create_future().set_exception(ValueError("broken"))
        await asyncio.sleep(0.1)
        tasks.clear()
        await asyncio.sleep(1)

    world.machine("here").start(program)
    with pytest.raises(ViolationError, match=r"seed 1 at .* here/1: .*broken"):
        world.run(seconds=2)
    world.violations.clear()


def test_sets_of_tasks_and_futures_have_one_order(world: World, run: Any):
    async def program() -> list[int]:
        loop = asyncio.get_running_loop()
        futures = {loop.create_future() for _ in range(100)}
        tasks = {loop.create_task(asyncio.sleep(0)) for _ in range(100)}
        await asyncio.wait(tasks)
        return [hash(each) for each in (*futures, *tasks)]

    numbers = run(program)
    assert len(set(numbers)) == 200
    with World(seed=1) as again:
        process = again.machine("here").start(program)
        again.run(seconds=1)
        assert process.result == numbers
