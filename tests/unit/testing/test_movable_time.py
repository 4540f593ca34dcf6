import asyncio
import time
from collections.abc import Callable, Coroutine

import pytest

from moldau.runtime.event_loop import run
from moldau.testing import movable_time
from moldau.testing.movable_time import MovableEnvironment

DAY = 86_400.0


def on_loop(
    test: Callable[[MovableEnvironment], Coroutine[None, None, None]],
) -> Callable[[], None]:
    """Run a test on a loop, with a time of its own."""

    async def main() -> None:
        await test(MovableEnvironment())

    def wrapped() -> None:
        run(main())

    wrapped.__name__ = test.__name__
    return wrapped


@on_loop
async def test_both_clocks_move_together(environment: MovableEnvironment) -> None:
    before, real = environment.now(), time.time_ns() // 1_000_000
    assert before.wall_ms == pytest.approx(real, abs=5_000)
    await environment.advance(7 * DAY)
    after = environment.now()
    assert after.monotonic - before.monotonic >= 7 * DAY
    assert after.wall_ms - before.wall_ms >= 7 * DAY * 1000
    assert after.monotonic - before.monotonic < 7 * DAY + 3600


@on_loop
async def test_what_is_due_happens_in_order(environment: MovableEnvironment) -> None:
    start = environment.monotonic()
    happened: list[int] = []
    for number in (3, 1, 2):
        environment.at(start + number * DAY, lambda number=number: happened.append(number))
    environment.at(start + 5 * DAY, lambda: happened.append(5))
    await environment.advance(4 * DAY)
    assert happened == [1, 2, 3]
    await environment.advance(2 * DAY)
    assert happened == [1, 2, 3, 5]


@on_loop
async def test_a_timer_that_is_cancelled_does_not_happen(environment: MovableEnvironment) -> None:
    happened: list[str] = []
    first = environment.at(environment.monotonic() + 1, lambda: happened.append("first"))
    environment.at(environment.monotonic() + 2, lambda: happened.append("second"))
    first.cancel()
    await environment.advance(3)
    assert happened == ["second"]


@on_loop
async def test_what_follows_from_what_was_due_happens_too(environment: MovableEnvironment) -> None:
    happened = asyncio.Event()

    def first() -> None:
        environment.at(environment.monotonic() + 60, happened.set)

    environment.at(environment.monotonic() + 45, first)
    await environment.advance(600)
    assert happened.is_set()


@on_loop
async def test_timers_go_by_real_time_as_well(environment: MovableEnvironment) -> None:
    await environment.advance(DAY)
    happened = asyncio.Event()
    environment.at(environment.monotonic() + 0.01, happened.set)
    async with asyncio.timeout(30):
        await happened.wait()


@on_loop
async def test_a_chore_is_done_when_the_time_has_moved(environment: MovableEnvironment) -> None:
    done: list[float] = []

    async def chore() -> None:
        while True:
            await environment.sleep(300)
            await asyncio.to_thread(time.sleep, 0.01)
            done.append(environment.monotonic())

    task = asyncio.create_task(chore())
    await asyncio.sleep(0)
    await environment.advance(3600)
    assert 3 < len(done) < 12, "again and again, but not for each of its intervals"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await environment.advance(3600)  # nothing is left to wait for


@on_loop
async def test_who_sleeps_can_be_woken(environment: MovableEnvironment) -> None:
    wake = asyncio.Event()
    task = asyncio.create_task(environment.sleep(3600, wake))
    await asyncio.sleep(0)
    wake.set()
    async with asyncio.timeout(30):
        await task
    await environment.settle()


@on_loop
async def test_a_chore_that_never_ends_is_named(environment: MovableEnvironment) -> None:
    async def stuck() -> None:
        await environment.sleep(1)
        await asyncio.Event().wait()

    task = asyncio.create_task(stuck())
    await asyncio.sleep(0)
    seconds = movable_time.WORK_SECONDS_MAX
    movable_time.WORK_SECONDS_MAX = 0.01  # type: ignore[misc]
    try:
        with pytest.raises(RuntimeError, match=r"does not come to rest: .*stuck"):
            await environment.advance(2)
    finally:
        movable_time.WORK_SECONDS_MAX = seconds  # type: ignore[misc]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@on_loop
async def test_an_exception_is_the_loops_and_others_go_on(environment: MovableEnvironment) -> None:
    noted: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noted.append(context))
    happened = asyncio.Event()

    def fail() -> None:
        raise KeyError("bad")

    environment.at(environment.monotonic() + 1, fail)
    environment.at(environment.monotonic() + 2, happened.set)
    await environment.advance(3)
    assert happened.is_set()
    assert [type(each["exception"]) for each in noted] == [KeyError]
