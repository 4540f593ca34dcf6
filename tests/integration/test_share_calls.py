"""How many Python calls a record costs that one of many share consumers gets and acknowledges."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from moldau.protocol.messages.share_fetch import ShareFetchResponse
from tests.call_counts import REQUESTS, CountedNode, counted_node
from tests.share_members import ShareMember, acquired_of, configure
from tests.unit.log.logs import batch_of
from tests.wire import Wire

MEMBERS = 8
ACCEPT = 1
WAIT_MS = 30_000
CALLS_MAX = {"page-cache": 390, "fsync": 560}
"""Of a record: its produce, the fetch that it wakes, and the acknowledgement with the next."""


class Crowd:
    """Members whose fetches wait; the one that gets a record acknowledges it with its next."""

    def __init__(self, members: list[ShareMember]) -> None:
        self._waiting = members
        for member in members:
            member.fetch(wait_ms=1)
            member.wire.send(member.fetch_request(wait_ms=WAIT_MS), 2)

    def take(self) -> None:
        """Receive what the fetch that waits longest gets, acknowledge, and wait for more."""
        member = self._waiting.pop(0)
        answer = member.wire.receive(ShareFetchResponse, 2)
        [row] = answer.responses[0].partitions
        said = [(first, last, [ACCEPT]) for first, last, _ in acquired_of(row)]
        assert said
        member.session_epoch += 1
        member.wire.send(member.fetch_request(said=said, wait_ms=WAIT_MS), 2)
        self._waiting.append(member)


@contextmanager
def crowd_of(node: CountedNode, topic: str) -> Iterator[Crowd]:
    """Have members of one group wait for the records of a topic."""
    with ExitStack() as stack:
        members = []
        for _ in range(MEMBERS):
            member = ShareMember("127.0.0.1", node.port, topic, topic)
            stack.callback(member.close)
            member.join()
            members.append(member)
        yield Crowd(members)


@pytest.mark.parametrize("durability", ["page-cache", "fsync"])
def test_a_shared_record(tmp_path: Path, durability: str) -> None:
    settings = {"log.dirs": str(tmp_path), "durability": durability}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic("t")
        configure(wire, "t", share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
        batch = bytes(batch_of())

        with crowd_of(node, "t") as crowd:

            def share() -> None:
                assert wire.produce("t", batch).error_code == 0
                crowd.take()

            calls = node.counted(share)
    assert calls.total() / REQUESTS <= CALLS_MAX[durability], calls.most_common()
