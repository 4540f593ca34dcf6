"""A process that follows a topic is killed with -9: its view is right, and goes on."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from moldau import Consumer, Producer
from moldau.pipelines.views.view import View
from moldau.testing import Broker
from tests.unit.pipelines.views.stores import PLAIN, Kept, latest_rows, open_store, stored_rows

KILLS = int(os.environ.get("MOLDAU_VIEW_KILLS", "3"))
SEED = int(os.environ.get("MOLDAU_VIEW_SEED", "1"))
RECORDS = 6_000
KEYS = 2_000
PARTITIONS = 3
DEADLINE_SECONDS = 60

pytestmark = pytest.mark.long


def produce(broker: Broker, topic: str, chance: random.Random) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(RECORDS):
            value = None if chance.random() < 0.3 else chance.randbytes(20)
            # A producer that puts keys where it likes.
            partition = chance.randrange(PARTITIONS) if chance.random() < 0.1 else None
            key = b"k%d" % chance.randrange(KEYS)
            producer.send(topic, value, key=key, partition=partition)
            if chance.random() < 0.01:
                producer.flush()


def read_all(broker: Broker, topic: str) -> list[Kept]:
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign_topics(topic)
        left = sum(consumer.end_offsets(consumer.assignment).values())
        records = []
        while len(records) < left:
            records += consumer.poll(DEADLINE_SECONDS * 1000)
    return [Kept(r.partition, r.offset, r.key, r.value, r.timestamp_ms) for r in records]


def check(folder: Path, topic: str, records: list[Kept]) -> int:
    """Compare what a killed process has left with the records before its positions."""
    said: list[str] = []
    store = open_store(folder, said, topic=topic)
    positions = store.positions
    read = [each for each in records if each.offset < positions.get(each.partition, 0)]
    assert stored_rows(store) == latest_rows(read, PLAIN)
    store.close()
    assert said == []
    return len(read)


def test_a_view_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    folder, errors = tmp_path / "view", tmp_path / "errors"
    with Broker() as broker:
        topic = broker.topic(partitions=PARTITIONS)
        command = [sys.executable, "-m", "tests.proofs.view_process", broker.bootstrap_servers]
        before = 0
        for kill in range(KILLS):
            records_chance = random.Random(f"{SEED} {kill}")
            producing = Thread(target=produce, args=(broker, topic, records_chance))
            with (
                errors.open("a") as sink,
                subprocess.Popen([*command, topic, str(folder)], stdout=-1, stderr=sink) as child,
            ):
                try:
                    assert child.stdout.readline(), errors.read_text()
                    producing.start()
                    # Not in step with anything: while it connects, reads or writes, or at rest.
                    time.sleep(chance.random() * 0.8)
                finally:
                    child.kill()
            producing.join()
            count = check(folder, topic, read_all(broker, topic))
            assert count >= before, "what was stored is stored"
            before = count
        records = read_all(broker, topic)
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with View(topic, {"id": "string"}, folder, config) as view:
            assert view.wait_until_caught_up(DEADLINE_SECONDS), view.progress
        assert check(folder, topic, records) == len(records)
    assert "damaged" not in errors.read_text()
