"""Worlds for tests of the simulator."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from moldau.simulation.machine import Process
from moldau.simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=1, keeps_text=True) as world:
        yield world


Program = Callable[[], Coroutine[Any, Any, Any]]


@pytest.fixture
def run(world: World) -> Callable[[Program], Any]:
    """Run a program as a process of its own until it returns; return what it returns."""

    def run(program: Program) -> Any:
        process = world.machine("here").start(program)
        assert world.run_until(lambda: not process.is_alive, seconds=3600)
        return result_of(process)

    return run


def result_of(process: Process) -> Any:
    if process.error is not None:
        raise process.error
    return process.result
