"""The fetch kernel beside the long way, which is readable: both answer every request alike.

MOLDAU_PLAIN_SEEDS runs more of them.
"""

import os
import random
from unittest.mock import Mock

import pytest

from moldau.broker.handlers import fetch as fetch_module
from moldau.broker.handlers.fetch import handle_fetch, try_fetch
from moldau.protocol.framing import encode_response
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.unit.broker.world import TOPIC, TOPIC_ID, Connection, World
from tests.unit.log.logs import batch_of

SEEDS = int(os.environ.get("MOLDAU_PLAIN_SEEDS", "30"))
PARTITIONS = 3


class Frames(Connection):
    """Gathers the frames of answers, whoever has encoded them."""

    def answered(self, call, response, sent) -> None:
        if not isinstance(response, bytes | list):
            response = encode_response(response, call.version, correlation_id=call.correlation_id)
        self.answers.append(response if isinstance(response, bytes) else b"".join(response))
        if sent is not None:
            sent()


class Twin:
    """A broker that answers by the kernel or without it."""

    def __init__(self, monkeypatch, *, is_plain: bool) -> None:
        self.world = World()
        self.world.create(partitions=PARTITIONS)
        self._monkeypatch = monkeypatch
        self._is_plain = is_plain
        self.plain = 0

    def fetch(self, request: FetchRequest, version: int) -> list[bytes]:
        """Return the frame of the answer, at once or when the wait is over."""
        frames = Frames()
        with self._monkeypatch.context() as patch:
            answer = fetch_module.answer_plain
            if self._is_plain:
                patch.setattr(fetch_module, "answer_plain", lambda *a: self._noted(answer(*a)))
            else:
                patch.setattr(fetch_module, "read_plain", lambda *_: None)
                patch.setattr(fetch_module, "find_plain", lambda *_: None)
            call = self.world.call(1, version, connection=frames)
            body = request.encode(version)
            frame = Mock(body=0, end=len(body), api_version=version)
            if not try_fetch(self.world.broker, call, body, frame):
                response = handle_fetch(self.world.broker, call, request.decode(body, version))
                if response is not None:
                    call.answer(response)
            self.world.environment.run(1.0)
        return frames.answers

    def _noted(self, response):
        self.plain += response is not None
        return response


class Client:
    """Makes up requests, the same for both."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.version = chance.randint(4, 18)
        self._has_session = self.version >= 7 and chance.random() < 0.6
        self._session = self._epoch = 0

    def request(self, ends: list[int]) -> FetchRequest:
        chance = self._chance
        numbers = [n for n in range(PARTITIONS) if chance.random() < 0.7] or [0]
        if chance.random() < 0.05:
            numbers.append(9)
        named = [
            FetchPartition(
                partition=number,
                fetch_offset=self._offset(ends[number % PARTITIONS]),
                partition_max_bytes=chance.choice([1, 100, 500, 1 << 20]),
                current_leader_epoch=chance.choice([-1, -1, 0, 5]) if self.version >= 9 else -1,
                last_fetched_epoch=chance.choice([-1, -1, 0]) if self.version >= 12 else -1,
            )
            for number in numbers
        ]
        topic = FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=named)
        forgotten = ForgottenTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[2])
        is_changed = self._epoch > 0 and chance.random() < 0.1
        return FetchRequest(
            max_wait_ms=chance.choice([0, 200]),
            min_bytes=chance.choice([0, 1, 400]),
            max_bytes=chance.choice([1, 300, 1 << 20]),
            isolation_level=chance.choice([0, 1]),
            session_id=self._session,
            session_epoch=self._epoch if self._has_session else -1,
            topics=[topic],
            forgotten_topics_data=[forgotten] if is_changed else [],
        )

    def _offset(self, end: int) -> int:
        chance = self._chance
        return end if chance.random() < 0.3 else chance.randint(0, end + (chance.random() < 0.1))

    def hear(self, frame: bytes) -> None:
        """Begin or go on with a session."""
        if not self._has_session:
            return
        at = 4 + 4 + (self.version >= 12) + 4
        error = int.from_bytes(frame[at : at + 2])
        self._session = 0 if error else int.from_bytes(frame[at + 2 : at + 6])
        self._epoch = 0 if error else self._epoch + 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_answer_alike(monkeypatch, seed: int) -> None:
    chance = random.Random(seed)
    kernel, reference = (Twin(monkeypatch, is_plain=each) for each in (True, False))
    clients = [Client(chance) for _ in range(3)]
    ends = [0] * PARTITIONS
    for _ in range(60):
        if chance.random() < 0.4:
            index, size = chance.randrange(PARTITIONS), chance.randint(1, 4)
            batch = batch_of(size)
            for twin in (kernel, reference):
                twin.world.write(bytearray(batch), index)
            ends[index] += size
            continue
        client = chance.choice(clients)
        request = client.request(ends)
        answer = kernel.fetch(request, client.version)
        assert answer == reference.fetch(request, client.version), (client.version, request)
        client.hear(answer[0])
    assert kernel.plain > 0
