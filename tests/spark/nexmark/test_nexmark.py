"""Nexmark's queries find what plain Python finds; MOLDAU_NEXMARK_EVENTS says in how many events."""

import json
import os
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from moldau import Producer
from moldau.testing.broker import Broker
from tests.spark.nexmark.events import Events, generate
from tests.spark.nexmark.oracle import ORACLE
from tests.spark.nexmark.site import QUERIES, Site, bids_in_time
from tests.spark.reading import read

EVENTS = int(os.environ.get("MOLDAU_NEXMARK_EVENTS", "8000"))
SEED = 20
UPSERTED = ("q4", "q6")


@pytest.fixture(scope="module")
def events() -> Events:
    return generate(EVENTS, SEED)


@pytest.fixture(scope="module")
def site(
    spark: SparkSession,
    broker: Broker,
    events: Events,
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    servers = broker.bootstrap_servers
    for topic in (*QUERIES, "bids-in-time"):
        broker.create_topic(topic, partitions=2)
    with Producer(servers) as producer:
        for topic, rows in events.by_topic():
            broker.create_topic(topic, partitions=2)
            for number, row in enumerate(rows):
                producer.send(topic, json.dumps(row).encode(), partition=number % 2)
    made = Site(spark, servers, tmp_path_factory.mktemp("nexmark"))
    bids_in_time(made)
    return made


@pytest.mark.parametrize("name", QUERIES)
def test_finds_what_plain_python_finds(
    broker: Broker, site: Site, events: Events, name: str
) -> None:
    QUERIES[name](site)
    records = read(broker.bootstrap_servers, name)
    if name in UPSERTED:
        records = list({record.key: record for record in records}.values())
    found = Counter(_canonical(json.loads(record.value or b"")) for record in records)
    expected = ORACLE[name](events)
    assert expected
    assert found == Counter(map(_canonical, expected))


def _canonical(row: dict[str, object]) -> str:
    return json.dumps(row, sort_keys=True)
