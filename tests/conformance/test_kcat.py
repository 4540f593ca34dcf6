"""kcat, with its distribution's librdkafka: produces, consumes, looks up, lists."""

import json
import subprocess
import time

import pytest

from moldau._native.records import Record
from moldau.records.compression import Codec
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.client import ACKS, CODECS
from tests.wire import Wire

LINES = [f"key {n % 7}:value number {n} " + "of many " * 8 for n in range(200)]
TIME = 1_700_000_000_000


def kcat(broker: RunningBroker, *arguments: str, lines: list[str] | None = None) -> str:
    done = subprocess.run(
        ["kcat", "-q", "-b", broker.bootstrap_servers, *arguments],
        input="\n".join(lines or []),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_produces_and_consumes(broker: RunningBroker, wire: Wire, codec: str) -> None:
    topic = f"kcat-{codec}"
    wire.create_topic(topic, partitions=len(ACKS))
    for partition, acks in enumerate(ACKS):
        setting = "enable.idempotence=true" if acks == "idempotent" else f"acks={acks}"
        place = ("-t", topic, "-p", str(partition))
        kcat(broker, "-P", *place, "-K:", "-z", codec, "-X", setting, lines=LINES)
        batches, records = wire.read(topic, partition, count=len(LINES))
        assert {batch.codec for batch in batches} == {Codec[codec.upper()]}
        assert len(records) == len(LINES)
        wanted = [f"{n} {line}" for n, line in enumerate(LINES)]
        read = kcat(broker, "-C", *place, "-o", "beginning", "-e", "-f", "%o %k:%s\\n")
        assert read.splitlines() == wanted
        read = kcat(broker, "-C", *place, "-o", "150", "-c", "20", "-f", "%o %k:%s\\n")
        assert read.splitlines() == wanted[150:170]


def test_kcat_looks_up_by_time(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("kcat-time")
    wire.produce("kcat-time", [Record(n, TIME + n * 1000, None, b"v", []) for n in range(100)])
    asked = [TIME - 1, TIME + 77_000, TIME + 77_001, TIME + 99_001]
    answers = [
        kcat(broker, "-Q", "-t", f"kcat-time:0:{timestamp}").split()[-1] for timestamp in asked
    ]
    assert answers == ["0", "77", "78", "-1"]


def test_kcat_creates_by_producing_and_lists(broker: RunningBroker) -> None:
    topic = f"kcat-made-{time.time_ns()}"
    kcat(broker, "-P", "-t", topic, lines=["one"])
    listed = json.loads(kcat(broker, "-L", "-J"))
    assert topic in {entry["topic"] for entry in listed["topics"]}
    [described] = json.loads(kcat(broker, "-L", "-J", "-t", topic))["topics"]
    assert [partition["leader"] for partition in described["partitions"]] == [
        listed["brokers"][0]["id"]
    ]
