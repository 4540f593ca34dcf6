"""Our faces of Kafka's tools beside Kafka's own, 4.3.1: same arguments, same output."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.conformance.both_tools import Tools
from tests.conformance.brokers import RunningBroker
from tests.conformance.sample_log import SampleLog


@pytest.fixture
def tools(broker: RunningBroker, tmp_path: Path) -> Tools:
    return Tools(broker.bootstrap_servers, tmp_path)


def described(text: str) -> list[str]:
    """Return a description with configs in order: Kafka's tool shows them in that of a hash map."""
    return [
        re.sub(r"(?<=Configs: ).*", lambda match: ",".join(sorted(match[0].split(","))), line)
        for line in text.splitlines()
    ]


def test_topics(tools: Tools) -> None:
    name, place = "kafka-topics", ("--topic", "beside")
    configs = ("--config", "retention.ms=77", "--config", "cleanup.policy=compact")
    create = ("--create", *place, "--partitions", "2", "--replication-factor", "1", *configs)
    assert tools.ours(name, *create) == (0, "Created topic beside.\n")
    tools.check(name, "--describe", *place, normal=described)
    assert "beside" in tools.check(name, "--list").split()
    # Both fail in the same way.
    assert "already exists" in tools.check(name, *create)
    tools.check(name, "--describe", "--topic", "absent")
    tools.check(name, "--delete", "--topic", "absent")
    assert tools.ours(name, "--alter", *place, "--partitions", "3") == (0, "")
    tools.check(name, "--alter", *place, "--partitions", "1")
    assert tools.ours(name, "--delete", *place) == (0, "")


def test_configs(tools: Tools) -> None:
    tools.ours("kafka-topics", "--create", "--topic", "configured")
    name, place = "kafka-configs", ("--entity-type", "topics", "--entity-name", "configured")
    added = ("--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    assert tools.check(name, "--alter", *place, *added) == (
        "Completed updating config for topic configured.\n"
    )
    tools.check(name, "--describe", *place)
    tools.check(name, "--describe", *place, "--all")
    tools.check(name, "--describe", "--topic", "absent")
    tools.check(name, "--describe", "--entity-type", "brokers")
    tools.check(name, "--describe", "--broker-defaults")
    metrics = ("--entity-type", "client-metrics")
    tools.check(name, "--alter", *metrics, "--entity-name", "m", "--add-config", "interval.ms=1000")
    assert "client-metric m" in tools.check(name, "--describe", *metrics)


def test_consoles(tools: Tools) -> None:
    tools.ours("kafka-topics", "--create", "--topic", "consoles")
    producer = ("kafka-console-producer", "--topic", "consoles")
    for word in ("--property", "--reader-property"):
        properties = (word, "parse.key=true", word, "parse.headers=true", word, "null.marker=NULL")
        line = f"from:{word},n:NULL\tkey\tvalue\nNULL\tNULL\tř\n"
        assert tools.ours(*producer, *properties, typed=line) == (0, "")
        assert tools.theirs(*producer, *properties, typed=line)[0] == 0
    consumer = ("kafka-console-consumer", "--topic", "consoles")
    everything = [
        word
        for name in ("key", "timestamp", "partition", "offset", "headers", "delivery")
        for word in ("--formatter-property", f"print.{name}=true")
    ]
    # A group is what Kafka's tool would use without a partition.
    place = ("--partition", "0", "--offset", "earliest", "--max-messages", "8")
    text = tools.check(*consumer, *place, *everything)
    assert text.count("from:--reader-property,n:null\tkey\tvalue\n") == 2
    code, _ = tools.ours(*consumer, "--offset", "earliest")
    assert code == tools.theirs(*consumer, "--offset", "earliest")[0] == 1


def test_offsets_and_deletes(tools: Tools) -> None:
    tools.ours("kafka-topics", "--create", "--topic", "offsets", "--partitions", "2")
    lines = "".join(f"{number}\n" for number in range(9))
    tools.ours("kafka-console-producer", "--topic", "offsets", typed=lines)
    name = "kafka-get-offsets"
    for words in (
        ("--topic", "offsets"),
        ("--topic", "offsets", "--time", "-2", "--partitions", "1"),
        ("--topic-partitions", "offs.*:0-1", "--time", "max-timestamp"),
        ("--topic", "offsets", "--time", "99999999999999"),
    ):
        tools.check(name, *words)
    file = tools.directory / "delete.json"
    rows = [{"topic": "offsets", "partition": number, "offset": 0} for number in (0, 1)]
    file.write_text(json.dumps({"partitions": rows, "version": 1}))
    words = ("--offset-json-file", str(file))
    tools.check("kafka-delete-records", *words, normal=lambda text: sorted(text.splitlines()))


def test_log_dirs(tools: Tools) -> None:
    tools.ours("kafka-topics", "--create", "--topic", "dirs", "--partitions", "3")

    def normal(text: str) -> object:
        *head, last = text.splitlines()
        content = json.loads(last)
        for broker in content["brokers"]:
            for directory in broker["logDirs"]:
                directory["partitions"].sort(key=lambda row: row["partition"])
        return head, content

    tools.check("kafka-log-dirs", "--describe", "--topic-list", "dirs", normal=normal)


def test_producer_performance(tools: Tools) -> None:
    words = ("--topic", "perf", "--num-records", "500", "--record-size", "10", "--throughput", "-1")

    def normal(text: str) -> str:
        return re.sub(r"\d+\.\d+|\d+(?= ms)", "N", text)

    tools.check("kafka-producer-perf-test", *words, normal=normal)


def test_dump_log(tools: Tools) -> None:
    sample = SampleLog(tools.directory / "sample-0")
    sample.fill(100)
    sample.owner.close()
    files = [path for path in sorted(sample.path.iterdir()) if path.suffix != ".snapshot"]
    names = ",".join(map(str, (path for path in files if path.suffix)))
    text = tools.check("kafka-dump-log", "--files", names, "--deep-iteration")
    assert "endTxnMarker: ABORT" in text
    segments = ",".join(str(path) for path in files if path.suffix == ".log")
    tools.check("kafka-dump-log", "--files", segments, "--print-data-log")
    snapshots = ",".join(map(str, sorted(sample.path.glob("*.snapshot"))))
    tools.check(
        "kafka-dump-log", "--files", snapshots, normal=lambda text: sorted(text.split("\n"))
    )


def test_dump_of_the_clusters_metadata(tools: Tools) -> None:
    _, text = tools.ours("kafka-log-dirs", "--describe")
    [directory] = json.loads(text.splitlines()[-1])["brokers"][0]["logDirs"]
    # A copy, because the broker goes on writing to it.
    folder = tools.directory / "__cluster_metadata-0"
    shutil.copytree(Path(directory["logDir"]) / folder.name, folder)
    files = sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])
    names = ",".join(map(str, files))
    text = tools.check("kafka-dump-log", "--files", names, "--cluster-metadata-decoder")
    assert '"type":"REGISTER_BROKER_RECORD"' in text
