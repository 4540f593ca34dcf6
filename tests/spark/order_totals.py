"""Orders of users over time, and the totals of windows that must come of them."""

import json
import random
import time
from collections import Counter
from typing import Final, Literal

from moldau import Admin, Producer, TopicPartition
from tests.spark.queries import Broker
from tests.spark.reading import read

BATCH_RECORDS: Final = 200
PARTITIONS: Final = 2
USERS: Final = 12
START: Final = 1_700_000_000
LATER: Final = 1_000
"""Seconds behind the last order, when every window before it is over."""
SCHEMA: Final = "user string, cents long, at timestamp"
WINDOW_SECONDS: Final = 10
WATERMARK: Final = "30 seconds"


class OrderTotals:
    """What is sent, and what totals must come of it."""

    def __init__(self, broker: Broker, topic: str, seed: int) -> None:
        self.broker = broker
        self.servers = broker.bootstrap_servers
        self.source = topic
        self.target = f"{topic}-totals"
        with Admin(self.servers) as admin:
            for name in (self.source, self.target):
                admin.create_topic(name, partitions=PARTITIONS)
        self._chance = random.Random(seed)
        self._now = START
        self._totals: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def send(self, batches: int) -> None:
        """Send orders for some batches: time goes on evenly in all partitions, none is late."""
        with Producer(self.servers) as producer:
            for _ in range(batches * 4):
                for number in range(BATCH_RECORDS // 4):
                    self._send(producer, self._chance.randrange(USERS), number % PARTITIONS)
                self._now += 5

    def close(self) -> None:
        """Send what ends every window before."""
        self._now += LATER
        with Producer(self.servers) as producer:
            for partition in range(PARTITIONS):
                self._send(producer, USERS, partition)

    def _send(self, producer: Producer, user: int, partition: int) -> None:
        at = self._now + self._chance.randrange(5)
        cents = self._chance.randrange(10_000)
        key = f"user-{user}@{at - at % WINDOW_SECONDS}"
        self._totals[key] += cents
        self._counts[key] += 1
        order = {"user": f"user-{user}", "cents": cents, "at": f"{_iso(at)}"}
        producer.send(self.source, json.dumps(order).encode(), partition=partition)

    def expected(self, *, closed: bool) -> dict[str, tuple[int, int]]:
        """Return the total of each window; with `closed`, only of those that are over."""
        return {
            key: (cents, self._counts[key])
            for key, cents in self._totals.items()
            if not (closed and key.startswith(f"user-{USERS}@"))
        }

    def found(self, *, is_over: bool = True) -> list[tuple[str, tuple[int, int]]]:
        """Return what was written, in the order of each key's partition; `is_over` says that
        nothing is being written any more.
        """
        written = []
        end: Literal["read_committed", "read_uncommitted"] = (
            "read_uncommitted" if is_over else "read_committed"
        )
        for record in read(self.servers, self.target, end):
            assert record.key is not None
            assert record.value is not None
            value = json.loads(record.value)
            written.append((record.key.decode(), (value["cents"], value["n"])))
        return written

    def written(self) -> int:
        """Return how far the target has come: it grows with every batch that has rows."""
        places = [TopicPartition(self.target, number) for number in range(PARTITIONS)]
        with Admin(self.servers) as admin:
            ends = admin.list_offsets(dict.fromkeys(places, "latest"))
        return sum(end.offset for end in ends.values())


def _iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
