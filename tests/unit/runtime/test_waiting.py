import asyncio

from moldau.runtime.event_loop import run
from moldau.runtime.waiting import sleep


def test_a_sleep_ends_with_its_time_or_when_it_is_woken() -> None:
    async def test() -> None:
        async with asyncio.timeout(30):
            await sleep(0.001)
            wake = asyncio.Event()
            await sleep(0.001, wake)
            assert not wake.is_set()
            asyncio.get_running_loop().call_soon(wake.set)
            await sleep(3600, wake)

    run(test())
