"""What the tests of apps share: topics with JSON, and an app that is made again and again."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from moldau import Admin, Producer, TopicPartition
from moldau.pipelines import App
from moldau.testing.broker import Broker
from tests.spark.reading import read

ORDERS: Final = "id string, user string, amount double, at timestamp"


def send(broker: Broker, topic: str, rows: Iterable[Mapping[str, Any]], key: str = "id") -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for row in rows:
            producer.send(topic, json.dumps(row).encode(), key=str(row[key]).encode())


def order(number: int, user: str, second: int, amount: float = 1.0) -> dict[str, Any]:
    at = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"
    return {"id": f"o{number}", "user": user, "amount": amount, "at": at}


def values(broker: Broker, topic: str) -> list[Any]:
    return [json.loads(record.value or b"null") for record in read(broker.bootstrap_servers, topic)]


def lag(broker: Broker, group: str, topic: str) -> int:
    """Return how far a group is behind the end of a topic."""
    with Admin(broker.bootstrap_servers) as admin:
        count = len(admin.list_topics()[topic].partitions)
        places = [TopicPartition(topic, index) for index in range(count)]
        ends = admin.list_offsets(dict.fromkeys(places, "latest"))
        committed = admin.list_group_offsets(group)
    return sum(ends[place].offset - committed[place].offset for place in places)


class Apps:
    """Makes the same app again and again, as runs of one file do."""

    def __init__(self, broker: Broker, name: str, folder: Path) -> None:
        self.broker = broker
        self.name = name
        self.folder = folder

    def make(self, **options: Any) -> App:
        return App(
            self.name,
            self.broker.bootstrap_servers,
            checkpoints=str(self.folder / "checkpoints"),
            **options,
        )
