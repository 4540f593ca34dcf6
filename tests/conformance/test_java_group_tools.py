"""Kafka's command line tools, 4.3.1, where they need groups and transactions."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from moldau._native.records import Record
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.conformance.brokers import RunningBroker
from tests.conformance.jars import run_java
from tests.wire import Wire, wait_for

TOOLS = "org.apache.kafka.tools"
GROUPS_TOOL = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
SHARE_TOOL = f"{TOOLS}.consumer.group.ShareGroupCommand"
TRANSACTIONS_TOOL = f"{TOOLS}.TransactionsCommand"
HEAD = re.compile(r"[A-Z-]{3,}$|TransactionalId|CoordinatorId|ProducerId")
TIME = 1_700_000_000_000
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


class Tools:
    """The tools, told which broker to ask."""

    def __init__(self, broker: RunningBroker, directory: Path) -> None:
        self.broker = broker
        self.server = ("--bootstrap-server", broker.bootstrap_servers)
        self.directory = directory

    def run(self, name: str, *arguments: str) -> str:
        done = run_java(self.directory, name, *self.server, *arguments)
        assert done.returncode == 0, f"{name} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def table(self, name: str, *arguments: str) -> list[dict[str, str]]:
        """Return what a tool printed as a table."""
        lines = [line.split() for line in self.run(name, *arguments).splitlines()]
        heads = next(n for n, line in enumerate(lines) if line and HEAD.match(line[0]))
        # Some heads are two words; what is below them never is.
        names = [word.lstrip("(").rstrip(")") for word in lines[heads] if word != "(ID)"]
        return [dict(zip(names, line, strict=False)) for line in lines[heads + 1 :] if line]


@pytest.fixture
def tools(broker: RunningBroker, tmp_path: Path) -> Tools:
    return Tools(broker, tmp_path)


def fill(wire: Wire, topic: str, partitions: int = 2, count: int = 20) -> None:
    wire.create_topic(topic, partitions)
    records = [Record(n, TIME + n * 1000, None, b"line %d" % n, []) for n in range(count)]
    for partition in range(partitions):
        assert wire.produce(topic, records, partition).error_code == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer(tools: Tools, wire: Wire, protocol: str) -> None:
    topic = f"tool-console-{protocol}"
    fill(wire, topic)
    words = ("--topic", topic, "--group", topic, "--from-beginning", "--max-messages", "40")
    words += ("--command-property", f"group.protocol={protocol}")
    printed = tools.run(f"{TOOLS}.consumer.ConsoleConsumer", *words).splitlines()
    assert sorted(printed) == sorted([f"line {n}" for n in range(20)] * 2)
    rows = tools.table(GROUPS_TOOL, "--describe", "--group", topic)
    assert {row["PARTITION"]: (row["CURRENT-OFFSET"], row["LAG"]) for row in rows} == {
        "0": ("20", "0"),
        "1": ("20", "0"),
    }


def test_consumer_performance(tools: Tools, wire: Wire) -> None:
    fill(wire, "tool-perf", 2, 2000)
    words = ("--topic", "tool-perf", "--num-records", "4000", "--group", "tool-perf")
    printed = tools.run(f"{TOOLS}.ConsumerPerformance", *words).splitlines()
    names = [name.strip() for name in printed[-2].split(",")]
    row = dict(zip(names, (value.strip() for value in printed[-1].split(",")), strict=True))
    assert int(row["data.consumed.in.nMsg"]) >= 4000


def test_verifiable_producer_and_consumer(tools: Tools, wire: Wire) -> None:
    topic = "tool-verifiable"
    wire.create_topic(topic, 2)
    tools.run(f"{TOOLS}.VerifiableProducer", "--topic", topic, "--max-messages", "200")
    words = ("--topic", topic, "--group-id", topic, "--max-messages", "200")
    words += ("--reset-policy", "earliest", "--enable-autocommit")
    printed = tools.run(f"{TOOLS}.VerifiableConsumer", *words)
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    names = {event["name"] for event in events}
    assert {"startup_complete", "partitions_assigned", "shutdown_complete"} <= names
    counts = [event["count"] for event in events if event["name"] == "records_consumed"]
    assert sum(counts) == 200


@contextmanager
def member(tools: Tools, topic: str, **config: str) -> Iterator[confluent_kafka.Consumer]:
    """A member that has all partitions."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": tools.broker.bootstrap_servers,
            "group.id": topic,
            "client.id": "a-member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS_MAX
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    try:
        yield consumer
    finally:
        consumer.close()


def test_consumer_groups(tools: Tools, wire: Wire) -> None:
    topic = group = "tool-groups"
    fill(wire, topic)
    here = ("--group", group)
    with member(tools, topic, **{"partition.assignment.strategy": "range"}) as consumer:
        places = [confluent_kafka.TopicPartition(topic, 0, 5)]
        consumer.commit(offsets=places, asynchronous=False)
        assert group in tools.run(GROUPS_TOOL, "--list").split()
        listed = tools.table(GROUPS_TOOL, "--list", "--state")
        assert {row["GROUP"]: row["STATE"] for row in listed}[group] == "Stable"
        rows = tools.table(GROUPS_TOOL, "--describe", *here)
        shown = {
            row["PARTITION"]: (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"])
            for row in rows
        }
        assert shown == {"0": ("5", "20", "15"), "1": ("-", "20", "-")}
        [row] = tools.table(GROUPS_TOOL, "--describe", *here, "--members")
        assert (row["CLIENT-ID"], row["#PARTITIONS"]) == ("a-member", "2")
        printed = tools.run(GROUPS_TOOL, "--describe", *here, "--state")
        assert re.search(rf"{group}\s+\S+:\d+\s+\(\d+\)\s+range\s+Stable\s+1", printed), printed
        refused = run_java(tools.directory, GROUPS_TOOL, *tools.server, "--delete", *here)
        assert "is not empty" in refused.stdout + refused.stderr
    reset = ("--reset-offsets", *here, "--topic", topic)
    for words, offset in (
        (("--to-latest",), "20"),
        (("--shift-by", "-3"), "17"),
        (("--to-datetime", "2023-11-14T22:13:27.000Z"), "7"),
    ):
        rows = tools.table(GROUPS_TOOL, *reset, *words, "--execute")
        assert {row["PARTITION"]: row["NEW-OFFSET"] for row in rows} == {"0": offset, "1": offset}
    tools.run(GROUPS_TOOL, "--delete-offsets", *here, "--topic", f"{topic}:1")
    rows = tools.table(GROUPS_TOOL, "--describe", *here)
    assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in rows} == {"0": "7"}
    assert "was successful" in tools.run(GROUPS_TOOL, "--delete", *here)
    assert group not in tools.run(GROUPS_TOOL, "--list").split()


def test_share_groups(tools: Tools, wire: Wire) -> None:
    topic = group = "tool-share"
    fill(wire, topic, 1)
    place = ("--entity-type", "groups", "--entity-name", group)
    added = ("--add-config", "share.auto.offset.reset=earliest")
    tools.run("kafka.admin.ConfigCommand", "--alter", *place, *added)
    words = ("--topic", topic, "--group", group, "--max-messages", "20")
    printed = tools.run(f"{TOOLS}.consumer.ConsoleShareConsumer", *words).splitlines()
    assert sorted(printed) == sorted(f"line {n}" for n in range(20))
    here = ("--group", group)
    assert group in tools.run(SHARE_TOOL, "--list").split()
    [row] = tools.table(SHARE_TOOL, "--describe", *here)
    assert (row["TOPIC"], row["PARTITION"]) == (topic, "0")
    assert 0 <= int(row["START-OFFSET"]) <= 20
    reset = ("--reset-offsets", *here, "--topic", topic, "--to-earliest", "--execute")
    [row] = tools.table(SHARE_TOOL, *reset)
    assert row["NEW-OFFSET"] == "0"
    tools.run(SHARE_TOOL, "--delete-offsets", *here, "--topic", topic)
    assert "was successful" in tools.run(SHARE_TOOL, "--delete", *here)


def test_transactions(tools: Tools, wire: Wire) -> None:
    topic = name = "tool-transactions"
    fill(wire, topic, 1)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": tools.broker.bootstrap_servers,
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    listed = tools.table(TRANSACTIONS_TOOL, "list")
    [row] = [row for row in listed if row["TransactionalId"] == name]
    assert row["TransactionState"] == "Ongoing"
    [row] = tools.table(TRANSACTIONS_TOOL, "describe", "--transactional-id", name)
    assert (row["TransactionState"], row["TopicPartitions"]) == ("Ongoing", f"{topic}-0")
    partition = ("--topic", topic, "--partition", "0")
    [row] = tools.table(TRANSACTIONS_TOOL, "describe-producers", *partition)
    assert row["CurrentTransactionStartOffset"] == "20"
    hanging = tools.run(TRANSACTIONS_TOOL, "find-hanging", "--broker-id", node_id(tools))
    assert topic not in hanging
    tools.run(TRANSACTIONS_TOOL, "abort", *partition, "--start-offset", "20")
    wait_for(lambda: stable_offset(wire, topic) == 22)


def node_id(tools: Tools) -> str:
    client = confluent_kafka.admin.AdminClient({"bootstrap.servers": tools.server[1]})
    [node] = client.list_topics(timeout=SECONDS_MAX).brokers
    return str(node)


def stable_offset(wire: Wire, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=topics)
    return wire.call(request, ListOffsetsResponse, 5).topics[0].partitions[0].offset
