"""How many Python calls a small fetch costs, from its frame to the write of its answer."""

import pytest

from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.call_counts import REQUESTS, counted_node
from tests.unit.log.logs import batch_of
from tests.wire import Wire

CALLS_MAX = 85
"""For three partitions; nearly all of them are those of the connection."""


class Consumer:
    """Fetches again and again."""

    def __init__(self, wire: Wire, partitions: int, *, has_session: bool) -> None:
        self._wire = wire
        self._partitions = partitions
        self._has_session = has_session
        self._session = self._epoch = 0

    def fetch(self) -> FetchResponse:
        named = [
            FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1 << 20)
            for number in range(self._partitions)
        ]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            session_id=self._session,
            session_epoch=self._epoch if self._has_session else -1,
            topics=[FetchTopic(topic="t", partitions=named)],
        )
        response = self._wire.call(request, FetchResponse, 12)
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
    assert count <= CALLS_MAX, calls.most_common()
