"""A world: one seed, one trace; what is logged; how a run ends."""

import asyncio
import logging

import pytest

from moldau.simulation.clock import EPOCH_MS
from moldau.simulation.world import ViolationError, World
from tests.unit.simulation.virtual_echo import Server, connect


def digest(seed: int) -> str:
    async def send() -> None:
        transport = await connect()
        for number in range(100):
            transport.write(b"%d" % number)
            await asyncio.sleep(0.01)

    with World(seed) as world:
        Server(world)
        world.machine("client").start(send)
        world.run(seconds=5)
        return world.trace.digest()


def test_a_seed_has_one_trace_and_others_have_others():
    assert digest(1) == digest(1)
    assert len({digest(seed) for seed in range(5)}) == 5


def test_streams_of_chance_do_not_disturb_each_other():
    first, second = World(1), World(1)
    first.random("other").random()
    assert first.random("workload").random() == second.random("workload").random()
    assert first.random("workload").random() != first.random("other").random()


def test_a_law_is_checked_after_every_step_and_ends_the_run(world: World):
    async def program() -> None:
        for _ in range(100):
            await asyncio.sleep(1)

    seen = []

    def check() -> None:
        seen.append(world.scheduler.steps)
        if world.seconds > 10:
            world.violate("it is late")

    world.after_step.append(check)
    world.machine("here").start(program)
    with pytest.raises(ViolationError, match=r"seed 1 at 1\d\.\d+ s: it is late"):
        world.run(seconds=50)
    assert seen == list(range(1, world.scheduler.steps + 1))


def test_errors_that_are_logged_are_told_apart_with_their_process(world: World):
    logger = logging.getLogger("moldau.test")

    async def program() -> None:
        logger.warning("a warning")
        logger.error("an error of %s", "mine")

    world.machine("here").start(program)
    world.run(seconds=1)
    assert [(each.process, each.text) for each in world.logs.errors] == [
        ("here/1", "an error of mine")
    ]
    told = [line.detail for line in world.trace.lines("here/1") if line.kind == "log"]
    assert told == ["WARNING a warning", "ERROR an error of mine"]


def test_the_trace_is_text_with_virtual_times(world: World):
    async def program() -> None:
        await asyncio.sleep(2)

    world.machine("here").start(program)
    world.run(seconds=5)
    text = [str(line).split() for line in world.trace.lines("here/1")]
    assert text[0] == ["0.000000000", "here/1", "start"]
    assert text[-1][1:] == ["here/1", "end"]
    assert 2 <= float(text[-1][0]) < 2.1


def test_chance_of_a_process_comes_from_the_seed():
    async def program() -> tuple[bytes, int]:
        environment = asyncio.get_running_loop().environment
        return environment.entropy(16), environment.now().wall_ms

    def result(seed: int) -> tuple[bytes, int]:
        with World(seed) as world:
            process = world.machine("here").start(program)
            world.run(seconds=1)
            return process.result

    assert result(1) == result(1)
    assert result(1)[0] != result(2)[0]
    assert result(1)[1] == EPOCH_MS
