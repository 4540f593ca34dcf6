"""Simulated threads: calls run whole, some at once, and report to the loop later."""

import asyncio
from typing import Any

import pytest

from moldau.simulation.world import ViolationError, World


def environment() -> Any:
    return asyncio.get_running_loop().environment


def test_a_call_runs_beside_the_loop_and_its_result_comes_later(run: Any):
    async def program() -> list[str]:
        told = []
        threads = environment().threads(1, "test")
        future = threads.run(lambda: told.append("ran") or 7)
        told.append("started")
        assert await future == 7
        return told

    assert run(program) == ["started", "ran"]


def test_an_error_reaches_the_future(run: Any):
    async def program() -> None:
        def fail() -> None:
            raise OSError("broken")

        with pytest.raises(OSError, match="broken"):
            await environment().threads(1, "test").run(fail)

    run(program)


@pytest.mark.parametrize("count", [1, 3])
def test_so_many_calls_are_under_way_at_once(count: int):
    async def program() -> list[int]:
        told: list[int] = []
        threads = environment().threads(count, "test")
        await asyncio.gather(*(threads.run(lambda n=n: told.append(n)) for n in range(20)))
        return told

    def order(seed: int) -> list[int]:
        with World(seed) as world:
            process = world.machine("here").start(program)
            world.run(seconds=10)
            return process.result

    told = order(1)
    assert sorted(told) == list(range(20))
    assert (told == list(range(20))) == (count == 1)
    assert told == order(1)


def test_reports_of_a_call_come_in_their_order(run: Any):
    async def program() -> list[int]:
        told: list[int] = []

        def work() -> None:
            for number in range(50):
                environment_here.call_from_thread(lambda n=number: told.append(n))
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()

        environment_here = environment()
        await environment_here.threads(2, "test").run(work)
        return told

    assert run(program) == list(range(50))


def test_a_wait_runs_what_was_started_before(run: Any):
    async def program() -> list[int]:
        told: list[int] = []
        threads = environment().threads(2, "test")
        jobs = [threads.start(lambda n=n: told.append(n)) for n in range(4)]
        jobs[2].wait()
        assert told == [0, 1, 2]
        jobs[2].wait()
        await asyncio.sleep(1)
        return told

    assert run(program) == [0, 1, 2, 3]


def test_closing_waits_unless_it_is_told_not_to(run: Any):
    async def program() -> list[int]:
        told: list[int] = []
        first, second = (environment().threads(1, "test") for _ in range(2))
        first.start(lambda: told.append(1))
        first.close()
        assert told == [1]
        second.start(lambda: told.append(2))
        second.close(wait=False)
        assert told == [1]
        with pytest.raises(RuntimeError, match="closed"):
            second.start(lambda: None)
        await asyncio.sleep(1)
        return told

    assert run(program) == [1, 2]


def test_calls_wait_for_a_device_that_hangs(world: World, run: Any):
    async def program() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        world.machine("here").stall(seconds=10)
        await environment().threads(1, "test").run(lambda: None)
        return loop.time() - before

    assert 10 <= run(program) < 11


def test_a_started_call_that_raises_is_a_violation(world: World):
    async def program() -> None:
        def fail() -> None:
            raise OSError("broken")

        environment().threads(1, "test").start(fail)
        await asyncio.sleep(1)

    world.machine("here").start(program)
    with pytest.raises(ViolationError, match=r"a call for test failed.*broken"):
        world.run(seconds=2)


def test_calls_of_a_paused_process_go_on_when_it_does(world: World):
    ran = []

    async def program() -> None:
        threads = environment().threads(1, "test")
        for number in range(3):
            threads.start(lambda n=number: ran.append((n, world.seconds > 10)))
        await asyncio.sleep(100)

    process = world.machine("here").start(program)
    world.run_until(lambda: world.scheduler.steps >= 2, seconds=1)
    process.pause()
    world.at(10, process.resume)
    world.run(seconds=20)
    assert ran == [(0, True), (1, True), (2, True)]
