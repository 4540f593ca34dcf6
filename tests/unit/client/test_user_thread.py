import asyncio
import threading
from collections.abc import Iterator

import pytest

from moldau.client.user_thread import call_user, run_listening


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def test_a_callback_runs_in_the_thread_that_waits_and_may_wait_itself(
    loop: asyncio.AbstractEventLoop,
) -> None:
    threads: list[threading.Thread] = []

    async def inner() -> int:
        threads.append(threading.current_thread())
        return 7

    def callback(word: str) -> None:
        assert word == "hello"
        threads.append(threading.current_thread())
        assert run_listening(inner(), loop) == 7

    async def work() -> str:
        await call_user(callback, "hello")
        return "done"

    assert run_listening(work(), loop) == "done"
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threads[0]


def test_what_a_callback_raises_is_raised_where_it_was_called(
    loop: asyncio.AbstractEventLoop,
) -> None:
    def callback() -> None:
        raise LookupError("on purpose")

    async def work() -> str:
        with pytest.raises(LookupError):
            await call_user(callback)
        return "caught"

    assert run_listening(work(), loop) == "caught"


def test_without_a_waiting_thread_a_callback_runs_in_the_loop() -> None:
    told: list[str] = []

    async def callback() -> None:
        await asyncio.sleep(0)
        told.append("awaited")

    async def work() -> None:
        await call_user(callback)
        await call_user(told.append, "called")

    asyncio.run(work())
    assert told == ["awaited", "called"]


def test_the_loops_own_thread_does_not_wait_for_itself(loop: asyncio.AbstractEventLoop) -> None:
    async def nothing() -> None:
        pass

    async def work() -> None:
        with pytest.raises(RuntimeError, match="wait for the thread"):
            run_listening(nothing(), loop)

    run_listening(work(), loop)
