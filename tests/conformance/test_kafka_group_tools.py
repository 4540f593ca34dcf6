"""Our faces of Kafka's tools for groups and transactions beside Kafka's own."""

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import moldau
from tests.conformance.both_tools import Tools
from tests.conformance.brokers import run_broker

SECONDS_MAX = 60
RECORDS = 12


class Served(NamedTuple):
    """A broker, and where its logs are."""

    bootstrap_servers: str
    data_directory: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    directory = tmp_path_factory.mktemp("broker")
    with run_broker(directory, settings) as running:
        yield Served(running.bootstrap_servers, directory / "data")


@pytest.fixture
def tools(served: Served, tmp_path: Path) -> Tools:
    return Tools(served.bootstrap_servers, tmp_path)


@pytest.fixture(scope="module")
def topic(served: Served) -> str:
    with moldau.Admin(served.bootstrap_servers) as admin:
        admin.create_topic("beside", 3, 1)
    with moldau.Producer(served.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send("beside", b"%d" % number, partition=number % 3)
    return "beside"


@contextmanager
def polling(consumer: "moldau.Consumer | moldau.ShareConsumer", topic: str) -> Iterator[None]:
    """Keep a member in its group, once it has records."""
    is_over, has_joined = threading.Event(), threading.Event()

    def poll() -> None:
        with consumer:
            consumer.subscribe(topic)
            while not is_over.is_set():
                if consumer.poll(timeout_ms=100):
                    has_joined.set()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert has_joined.wait(SECONDS_MAX)
        yield
    finally:
        is_over.set()
        thread.join()


def in_order(text: str) -> list[str]:
    """Return lines in order: Kafka's tools print in that of hash maps."""
    return sorted(text.splitlines())


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_idle_groups(served: Served, tools: Tools, topic: str) -> None:
    name, group = "kafka-consumer-groups", ("--group", "idle")
    with moldau.Admin(served.bootstrap_servers) as admin:
        admin.alter_group_offsets("idle", {moldau.TopicPartition(topic, 0): 2})
    tools.check(name, "--describe", *group)
    tools.check(name, "--describe", *group, "--members")
    tools.check(name, "--describe", *group, "--state")
    assert "Empty" in tools.check(name, "--list", "--state", "--type", normal=in_order)
    tools.check(name, "--describe", "--group", "absent")
    reset = (name, "--reset-offsets", *group)
    tools.check(*reset, "--topic", topic, "--to-offset", "1", "--execute", normal=in_order)
    late = ("--to-datetime", "2099-01-01T00:00:00.000", "--dry-run")
    tools.check(*reset, "--topic", f"{topic}:0,1", *late, normal=in_order)
    tools.check(*reset, "--all-topics", "--shift-by", "99", "--export", normal=in_order)
    tools.check(*reset, "--topic", f"{topic}:7", "--to-latest", "--dry-run")
    tools.check(*reset, "--topic", "absent", "--to-latest", "--dry-run")
    file = tools.directory / "plan.csv"
    file.write_text(f"{topic},0,1\n{topic},2,3\n")
    tools.check(*reset, "--from-file", str(file), "--execute", normal=in_order)
    tools.check(name, "--delete-offsets", *group, "--topic", f"{topic}:0", "--topic", "absent")
    assert "Deletion of requested" in tools.ours(name, "--delete", *group)[1]
    tools.check(name, "--delete", *group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_members(served: Served, tools: Tools, topic: str, protocol: str) -> None:
    name, group = "kafka-consumer-groups", ("--group", f"busy-{protocol}")
    consumer = moldau.Consumer(
        served.bootstrap_servers,
        group_id=group[1],
        group_protocol=protocol,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
        group_instance_id="one" if protocol == "classic" else "",
    )
    with polling(consumer, topic), moldau.Admin(served.bootstrap_servers) as admin:
        wait_until(lambda: len(admin.list_group_offsets(group[1])) == 3)
        tools.check(name, "--describe", *group, "--offsets", "--verbose", normal=in_order)
        tools.check(name, "--describe", *group, "--members", "--verbose")
        tools.check(name, "--describe", *group, "--state", "--verbose")
        tools.check(name, "--reset-offsets", *group, "--topic", topic, "--to-latest", "--execute")
        tools.check(name, "--delete", *group)
        tools.check(name, "--delete-offsets", *group, "--topic", topic)
        tools.check("kafka-groups", "--list", "--group-type", protocol, normal=in_order)


def test_share_groups(served: Served, tools: Tools, topic: str) -> None:
    name, group = "kafka-share-groups", ("--group", "shared")
    with moldau.Admin(served.bootstrap_servers) as admin:
        resource = moldau.ConfigResource(moldau.ResourceType.GROUP, "shared")
        admin.alter_configs(resource, set={"share.auto.offset.reset": "earliest"})
    with polling(moldau.ShareConsumer(served.bootstrap_servers, group_id="shared"), topic):
        tools.check(name, "--describe", *group, "--members", "--verbose")
        tools.check(name, "--describe", *group, "--state", "--verbose")
        tools.check(name, "--delete", *group)
        tools.check(name, "--delete-offsets", *group, "--topic", topic)
        tools.check("kafka-groups", "--list", "--share")
    tools.check(name, "--list", "--state")
    console = ("kafka-console-share-consumer", *group, "--topic", topic, "--timeout-ms", "20000")
    words = ("--max-messages", "2", "--formatter-property", "print.delivery=true")
    with moldau.Producer(served.bootstrap_servers) as producer:
        producer.send(topic, b"again", partition=0)
        producer.send(topic, b"again", partition=0)
    assert tools.ours(*console, *words, "--release") == (0, "Delivery:1\tagain\n" * 2)
    assert tools.theirs(*console, *words, "--release") == (0, "Delivery:2\tagain\n" * 2)
    assert tools.ours(*console, *words) == (0, "Delivery:3\tagain\n" * 2)
    tools.check(name, "--describe", *group, "--verbose", normal=in_order)
    words = ("--topic", topic, "--to-latest", "--execute")
    tools.check(name, "--reset-offsets", *group, *words, normal=in_order)
    tools.check(name, "--delete-offsets", *group, "--topic", "absent")
    assert "was successful" in tools.ours(name, "--delete", *group)[1]
    tools.check(name, "--delete", *group)


def test_consuming_in_turns(served: Served, tools: Tools) -> None:
    with moldau.Admin(served.bootstrap_servers) as admin:
        admin.create_topic("in-turns", 3, 1)
    with moldau.Producer(served.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send("in-turns", b"%d" % number, partition=number % 3)
    words = ("--topic", "in-turns", "--group", "turns", "--from-beginning", "--max-messages", "4")
    parts = [
        consume("kafka-console-consumer", *words)
        for consume in (tools.ours, tools.theirs, tools.ours)
    ]
    assert [code for code, _ in parts] == [0, 0, 0]
    read = [int(line) for _, text in parts for line in text.splitlines()]
    assert sorted(read) == list(range(RECORDS)), "each once, whoever has read it"
    tools.check(
        "kafka-consumer-perf-test",
        *("--topic", "in-turns", "--num-records", f"{RECORDS}"),
        normal=lambda text: re.sub(r"\d+(\.\d+)?", "N", text),
    )


def test_transactions(served: Served, tools: Tools, topic: str) -> None:
    name = "kafka-transactions"
    with moldau.Producer(served.bootstrap_servers, transactional_id="open") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"not yet", partition=1)
        producer.flush()
        assert "Ongoing" in tools.check(name, "list")
        aged = ("describe", "--transactional-id", "open")
        tools.check(
            name, *aged, normal=lambda text: re.sub(r"\t\d+ *(?=\t\S+ *\t$)", "", text, flags=re.M)
        )
        place = ("--topic", topic, "--partition", "1")
        tools.check(name, "describe-producers", *place, normal=in_order)
        tools.check(name, "find-hanging", "--broker-id", "1")
        tools.check(name, "abort", *place, "--start-offset", "99")
        assert tools.ours(name, "abort", *place, "--start-offset", f"{RECORDS // 3}") == (0, "")
        producer.abort_transaction()
    tools.check(name, "describe-producers", *place, normal=in_order)
    tools.check(name, "describe", "--transactional-id", "absent")


def test_dumps_of_coordinators(served: Served, tools: Tools, topic: str) -> None:
    """What the other tests left behind, and a little more for when this one runs alone."""
    with moldau.Admin(served.bootstrap_servers) as admin:
        admin.alter_group_offsets("dumped", {moldau.TopicPartition(topic, 0): 2})
    for option, state in (
        ("--offsets-decoder", "__consumer_offsets"),
        ("--transaction-log-decoder", "__transaction_state"),
        ("--share-group-state-decoder", "__share_group_state"),
    ):
        # Copies, because the broker goes on writing.
        for folder in served.data_directory.glob(f"{state}-*"):
            shutil.copytree(folder, tools.directory / folder.name)
        files = [path for path in tools.directory.glob(f"{state}-*/*.log") if path.stat().st_size]
        if files:
            names = ",".join(map(str, sorted(files)))
            assert "payload: " in tools.check("kafka-dump-log", option, "--files", names)
