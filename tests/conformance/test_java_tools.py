"""Kafka's command line tools, 4.3.1, those that need no group."""

import json
import re
from pathlib import Path

import pytest

from moldau._native.records import Record
from tests.conformance.brokers import RunningBroker
from tests.conformance.jars import run_java
from tests.wire import Wire

TOOLS = "org.apache.kafka.tools"
TIME = 1_700_000_000_000


class Tools:
    """The tools, told which broker to ask."""

    def __init__(self, broker: RunningBroker, directory: Path) -> None:
        self.server = ("--bootstrap-server", broker.bootstrap_servers)
        self.directory = directory

    def run(self, name: str, *arguments: str, typed: str = "") -> str:
        done = run_java(self.directory, name, *self.server, *arguments, typed=typed)
        assert done.returncode == 0, f"{name} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def tools(broker: RunningBroker, tmp_path: Path) -> Tools:
    return Tools(broker, tmp_path)


def test_kafka_topics(tools: Tools) -> None:
    topics = f"{TOOLS}.TopicCommand"
    place = ("--topic", "tools-topics")
    created = tools.run(
        topics, "--create", *place, "--partitions", "3", "--config", "retention.ms=123456"
    )
    assert "Created topic tools-topics." in created
    tools.run(topics, "--alter", *place, "--partitions", "5")
    described = tools.run(topics, "--describe", *place)
    assert re.search(
        r"PartitionCount: 5\s+ReplicationFactor: 1\s+Configs:.*retention.ms=123456", described
    )
    assert (
        len(re.findall(r"Partition: \d\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 5
    )
    tools.run(topics, "--delete", *place)
    assert "tools-topics" not in tools.run(topics, "--list").split()


def test_console_producer_and_get_offsets(tools: Tools, wire: Wire) -> None:
    wire.create_topic("tools-console", partitions=2)
    lines = [f"key {n}:value {n}" for n in range(50)]
    properties = ("parse.key=true", "key.separator=:")
    tools.run(
        f"{TOOLS}.ConsoleProducer",
        "--topic",
        "tools-console",
        *(word for one in properties for word in ("--reader-property", one)),
        typed="\n".join(lines),
    )
    counted = tools.run(f"{TOOLS}.GetOffsetShell", "--topic", "tools-console").splitlines()
    ends = {line.rpartition(":")[0]: int(line.rpartition(":")[2]) for line in counted}
    assert ends.keys() == {"tools-console:0", "tools-console:1"}
    assert sum(ends.values()) == len(lines)


def test_delete_records_and_get_offsets_by_time(tools: Tools, wire: Wire) -> None:
    topic = "tools-offsets"
    wire.create_topic(topic)
    wire.produce(topic, [Record(n, TIME + n * 1000, None, b"v", []) for n in range(100)])
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 10}], "version": 1}
    file = tools.directory / "delete.json"
    file.write_text(json.dumps(wanted))
    said = tools.run(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"partition: {topic}-0\tlow_watermark: 10" in said
    for asked, offset in (
        ("earliest", 10),
        ("latest", 100),
        ("max-timestamp", 99),
        (str(TIME + 77_001), 78),
    ):
        printed = tools.run(f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", asked)
        assert printed.strip() == f"{topic}:0:{offset}"


def test_kafka_configs(tools: Tools, wire: Wire) -> None:
    configs = "kafka.admin.ConfigCommand"
    wire.create_topic("tools-configs")
    place = ("--entity-type", "topics", "--entity-name", "tools-configs")
    tools.run(configs, "--alter", *place, "--add-config", "max.message.bytes=5000")
    described = tools.run(configs, "--describe", "--all", *place)
    line = next(line for line in described.splitlines() if "max.message.bytes" in line)
    assert "max.message.bytes=5000 sensitive=false" in line
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=5000" in line
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in line


def test_kafka_configs_of_the_broker(tools: Tools) -> None:
    configs = "kafka.admin.ConfigCommand"
    place = ("--entity-type", "brokers", "--entity-default")
    tools.run(configs, "--alter", *place, "--add-config", "log.cleaner.threads=2")
    described = tools.run(configs, "--describe", *place)
    assert "log.cleaner.threads=2" in described
    tools.run(configs, "--alter", *place, "--delete-config", "log.cleaner.threads")


def test_log_dirs(tools: Tools, wire: Wire) -> None:
    wire.create_topic("tools-log-dirs")
    wire.produce("tools-log-dirs", [Record(0, TIME, None, b"v" * 1000, [])])
    printed = tools.run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "tools-log-dirs")
    answer = json.loads(printed.splitlines()[-1])
    [directory] = answer["brokers"][0]["logDirs"]
    [partition] = directory["partitions"]
    assert directory["error"] is None
    assert partition["partition"] == "tools-log-dirs-0"
    assert partition["size"] > 1000


def test_verifiable_producer(tools: Tools, wire: Wire) -> None:
    wire.create_topic("tools-verifiable", partitions=2)
    words = ("--topic", "tools-verifiable", "--max-messages", "500", "--acks", "-1")
    printed = tools.run(f"{TOOLS}.VerifiableProducer", *words)
    last = json.loads(printed.splitlines()[-1])
    assert (last["name"], last["sent"], last["acked"]) == ("tool_data", 500, 500)


def test_producer_performance(tools: Tools, wire: Wire) -> None:
    wire.create_topic("tools-performance")
    words = ("--topic", "tools-performance", "--num-records", "20000", "--record-size", "100")
    printed = tools.run(f"{TOOLS}.ProducerPerformance", *words, "--throughput", "-1")
    assert printed.splitlines()[-1].startswith("20000 records sent")
    assert wire.list_offset("tools-performance", -1).offset == 20000
