"""How many Python calls a small fetch costs, from its frame to the write of its answer."""

from collections.abc import Callable
from itertools import count as numbers

import pytest

from moldau.log.offset_index import OffsetIndex
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.call_counts import REQUESTS, WARM_UP, counted_node
from tests.unit.log.logs import batch_of
from tests.wire import LATEST, Wire

CALLS_MAX = 25
FURTHER_CALLS_MAX = 4
"""Of each partition behind the first: a disk in memory is read by Python."""

LARGE_CALLS_MAX = 40
"""Of a fetch that leaves from its file, with the look at where the next one begins."""

WAITING_CALLS_MAX = 58
"""Of a fetch that finds nothing, and is answered when a produce wakes it."""


class Consumer:
    """Fetches again and again."""

    def __init__(self, wire: Wire, partitions: int, *, has_session: bool) -> None:
        self._wire = wire
        self._partitions = partitions
        self._has_session = has_session
        self._session = self._epoch = 0

    def fetch(self, offset: int = 0, meanwhile: Callable[[], object] = int) -> FetchResponse:
        """Fetch from an offset; what happens meanwhile may be what the fetch waits for."""
        named = [
            FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
            for number in range(self._partitions)
        ]
        request = FetchRequest(
            max_wait_ms=30_000,
            min_bytes=1,
            session_id=self._session,
            session_epoch=self._epoch if self._has_session else -1,
            topics=[FetchTopic(topic="t", partitions=named)],
        )
        self._wire.send(request, 12)
        meanwhile()
        response = self._wire.receive(FetchResponse, 12)
        assert not response.error_code
        rows = response.responses[0].partitions
        assert len(rows) == self._partitions
        assert all(row.records for row in rows)
        if self._has_session:
            self._session = response.session_id
            self._epoch += 1
        return response


@pytest.mark.parametrize("durability", ["memory", "page-cache"])
@pytest.mark.parametrize("has_session", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_small_fetch(tmp_path, durability: str, has_session: bool, partitions: int) -> None:
    settings = {"log.dirs": str(tmp_path), "durability": durability}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic("t", partitions)
        for number in range(partitions):
            wire.produce("t", bytes(batch_of()), number)
        calls = node.counted(Consumer(wire, partitions, has_session=has_session).fetch)
    count = sum(calls.values()) / REQUESTS
    assert count <= CALLS_MAX + (partitions - 1) * FURTHER_CALLS_MAX, calls.most_common()


LARGE_BATCH = bytes(batch_of(value=b"v" * 70_000))
LARGE_FETCH_BYTES = 2 * len(LARGE_BATCH) + 1_000


class LargeReader:
    """Reads large batches in order, two with each fetch, and a part of a third."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.offset = 0

    def fetch(self) -> None:
        """Read on."""
        named = FetchPartition(fetch_offset=self.offset, partition_max_bytes=LARGE_FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=30_000,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic="t", partitions=[named])],
        )
        response = self._wire.call(request, FetchResponse, 11)
        records = response.responses[0].partitions[0].records
        assert len(records) == LARGE_FETCH_BYTES
        assert int.from_bytes(records[:8]) == self.offset
        self.offset += 2


def test_a_large_fetch(tmp_path) -> None:
    settings = {"log.dirs": str(tmp_path), "durability": "page-cache"}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic("t", 1)
        for _ in range(2 * (WARM_UP + REQUESTS) + 1):
            wire.produce("t", LARGE_BATCH)
        calls = node.counted(LargeReader(wire).fetch)
    assert sum(calls.values()) / REQUESTS <= LARGE_CALLS_MAX, calls.most_common()


@pytest.mark.parametrize("wrong", [(1, 0), (0, 1), (0, -1)])
def test_an_index_that_misleads_does_not_mislead_readers(
    tmp_path, monkeypatch, wrong: tuple[int, int]
) -> None:
    at_hand = OffsetIndex.entry_at_hand
    misled = []

    def mislead(index: OffsetIndex, position: int) -> tuple[int, int] | None:
        entry = at_hand(index, position)
        if entry is None:
            return None
        misled.append(entry)
        return entry[0] + wrong[0], entry[1] + wrong[1]

    monkeypatch.setattr(OffsetIndex, "entry_at_hand", mislead)
    settings = {"log.dirs": str(tmp_path), "durability": "page-cache"}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic("t", 1)
        for _ in range(21):
            wire.produce("t", LARGE_BATCH)
        reader = LargeReader(wire)
        while reader.offset < 18:
            reader.fetch()
    assert misled


def test_a_fetch_that_waits_for_a_produce(tmp_path) -> None:
    settings = {"log.dirs": str(tmp_path), "durability": "page-cache"}
    with (
        counted_node(settings) as node,
        Wire("127.0.0.1", node.port) as wire,
        Wire("127.0.0.1", node.port) as other,
    ):
        wire.create_topic("t", 1)
        batch = bytes(batch_of())
        produced = node.counted(lambda: other.produce("t", batch))
        consumer = Consumer(wire, 1, has_session=True)
        offsets = numbers(wire.list_offset("t", LATEST).offset)
        fetched = node.counted(
            lambda: consumer.fetch(next(offsets), lambda: other.produce("t", batch))
        )
    count = (fetched.total() - produced.total()) / REQUESTS
    assert count <= WAITING_CALLS_MAX, (fetched - produced).most_common()
