"""Apps from topic to topic: decoded rows, windows, changes, and what starts go on from."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from moldau import Admin, ConfigResource, Producer, ResourceType, TopicPartition
from moldau.client.errors import KafkaError
from moldau.pipelines import App, PipelineError
from moldau.pipelines.streams.emitting import GrowingStateWarning
from moldau.testing.broker import Broker
from tests.spark.reading import read

ORDERS = "id string, user string, amount double, at timestamp"


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


@pytest.fixture
def apps(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> Apps:
    return Apps(broker, topic[-60:], tmp_path)


def totals_app(apps: Apps, topic: str, emit: Any = None) -> App:
    app = apps.make()
    orders = app.stream(topic, ORDERS, event_time="at", watermark="10 seconds")
    totals = orders.groupBy("user", F.window("at", "1 minute")).agg(F.sum("amount").alias("total"))
    app.to(totals, f"{topic}-totals", key=["user", "window"], emit=emit)
    return app


def test_windows_are_written_once_when_they_are_over(
    apps: Apps, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=2)
    send(broker, topic, [order(n, f"u{n % 3}", n, n) for n in range(120)])
    totals_app(apps, topic).run(once=True)
    # Rows that come later, and that close the second minute.
    send(broker, topic, [order(200, "u0", 300)])
    totals_app(apps, topic).run(once=True)
    found = values(broker, f"{topic}-totals")
    expected = {
        (f"u{u}", minute): float(sum(n for n in range(60 * minute, 60 * minute + 60) if n % 3 == u))
        for u in range(3)
        for minute in range(2)
    }
    assert len(found) == len(expected)
    assert {(each["user"], int(each["window"]["start"][15])): each["total"] for each in found} == (
        expected
    )
    assert len(broker_partitions(broker, f"{topic}-totals")) == 2
    assert lag(broker, f"moldau-{topic}-totals", topic) == 0


def broker_partitions(broker: Broker, topic: str) -> list[int]:
    with Admin(broker.bootstrap_servers) as admin:
        return [each.index for each in admin.list_topics()[topic].partitions]


def test_changes_are_upserts_in_a_compacted_topic(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    for first in (0, 10):
        send(broker, topic, [order(n, f"u{n % 3}", n, n) for n in range(first, first + 10)])
        app = apps.make()
        with pytest.warns(GrowingStateWarning, match="keeps every key for ever"):
            app.to(
                app.stream(topic, ORDERS).groupBy("user").agg(F.sum("amount").alias("total")),
                f"{topic}-sums",
                key="user",
            )
        app.run(once=True)
    latest = {}
    for record in read(broker.bootstrap_servers, f"{topic}-sums"):
        latest[record.key] = json.loads(record.value or b"")["total"]
    assert latest == {f"u{u}".encode(): sum(n for n in range(20) if n % 3 == u) for u in range(3)}
    resource = ConfigResource(ResourceType.TOPIC, f"{topic}-sums")
    with Admin(broker.bootstrap_servers) as admin:
        configs = admin.describe_configs([resource])[resource]
    assert not isinstance(configs, KafkaError)
    assert configs["cleanup.policy"].value == "compact"
