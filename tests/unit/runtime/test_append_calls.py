"""How many Python calls an append costs, from the replica to its callback.

`sys.setprofile` counts calls of Python functions, and those of builtin ones by Python. It does not
see the methods of kernels, nor what they call in C.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from moldau.kernel.ids import LeaderEpoch, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.records.batch import validate
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime.log_store import LogStore
from tests.stores import TOPIC_ID, Broker, batch_of, now, open_store

PARTITION = TopicPartition("t", 0)
TURN_CALLS_MAX = 7


def calls_of(function: Callable[[], object]) -> Counter[str]:
    """Count the calls of Python functions, and those of C functions by Python, in a call."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            counts[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            counts[argument.__qualname__] += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    del counts["setprofile"]
    return counts


class Waiter:
    """Counts the appends that it has heard of."""

    def __init__(self) -> None:
        self.count = 0

    def committed(self, _) -> None:
        self.count += 1


async def lead(store: LogStore) -> Replica:
    log = await store.create(PARTITION, TOPIC_ID, LogConfig())
    replicas = Replicas(1, lambda *_: True, store)
    return replicas.lead(PARTITION, TOPIC_ID, log, LeaderEpoch(0))


@pytest.mark.parametrize("durability", [Durability.PAGE_CACHE, Durability.MEMORY])
@pytest.mark.parametrize("count", [1, 5])
def test_an_ordinary_append_is_one_call_and_a_turn_is_a_few(
    tmp_path, durability: Durability, count: int
) -> None:
    async def run() -> None:
        async with open_store([tmp_path], Broker(), durability=durability) as store:
            replica, waiter = await lead(store), Waiter()
            first = batch_of(b"first")
            replica.append(first, validate(first), now(), waiter)
            store.write()
            producer = {"producer_id": 1, "producer_epoch": 0}
            batches = [batch_of(b"v" * 99, base_sequence=n, **producer) for n in range(count)]
            places = [(memoryview(data), len(data)) for data in batches]
            instant = now()

            def append() -> None:
                for data, size in places:
                    replica.try_append(data, 0, size, instant, -1, waiter)

            assert calls_of(append) == {append.__qualname__: 1}  # all else is in the kernel
            writing = calls_of(store.writes.end_turn)
            assert waiter.count == 1 + count
            assert writing.pop("Waiter.committed") == count  # by each that waits, were it Python
            assert writing.total() <= TURN_CALLS_MAX, writing

    asyncio.run(run())
