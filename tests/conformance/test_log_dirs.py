"""Two log directories, used with our wire and with Kafka's own tools: Kafka 4.3.1 and we agree."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau._native.records import Record, read_batches
from moldau.log.identity import META_PROPERTIES, parse_meta_properties
from moldau.metadata.batches import replayable
from moldau.metadata.image import ClusterImage
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from moldau.records.batch import read_records
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau
from tests.conformance.jars import run_java
from tests.wire import Wire

DEADLINE_SECONDS = 30
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
TIME = 1_700_000_000_000
COUNT = 30
KINDS = ("apache", "moldau")


class Directories:
    """A broker with two log directories."""

    def __init__(self, broker: RunningBroker, wire: Wire, directory: Path) -> None:
        self.broker = broker
        self.wire = wire
        self.directory = directory
        self.roots = [str(directory / "data"), str(directory / "more")]

    def ask(self, root: str, topic: str, index: int = 0) -> ErrorCode:
        wish = AlterReplicaLogDirTopic(name=topic, partitions=[index])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=root, topics=[wish])])
        [answer] = self.wire.call(request, AlterReplicaLogDirsResponse, 2).results
        return ErrorCode(answer.partitions[0].error_code)

    def places(self, topic: str) -> dict[int, list[tuple[str, int, bool]]]:
        """Return where the partitions of a topic are: directory, lag, and whether it is a copy."""
        wanted = [DescribableLogDirTopic(topic=topic, partitions=list(range(4)))]
        answer = self.wire.call(DescribeLogDirsRequest(topics=wanted), DescribeLogDirsResponse, 4)
        found: dict[int, list[tuple[str, int, bool]]] = {}
        for directory in answer.results:
            assert directory.error_code == 0
            for named in directory.topics:
                for each in named.partitions:
                    place = (directory.log_dir, each.offset_lag, each.is_future_key)
                    found.setdefault(each.partition_index, []).append(place)
        return found

    def wait(self, topic: str, index: int, root: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.places(topic)[index] != [(root, 0, False)]:
            assert time.monotonic() < deadline, self.places(topic)
            time.sleep(0.05)

    def other(self, root: str) -> str:
        [other] = set(self.roots) - {root}
        return other

    def tool(self, name: str, *arguments: str) -> str:
        server = ("--bootstrap-server", self.broker.bootstrap_servers)
        done = run_java(self.directory, name, *server, *arguments)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


@contextmanager
def run(kind: str, directory: Path) -> Iterator[Directories]:
    settings = {"log.dirs": f"{directory / 'data'},{directory / 'more'}"}
    start = run_apache if kind == "apache" else run_moldau
    with start(directory, settings) as broker, Wire(broker.host, broker.port) as wire:
        yield Directories(broker, wire, directory)


@pytest.fixture(scope="module", params=KINDS)
def two(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Directories]:
    with run(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def fill(two: Directories, topic: str, partitions: int = 1) -> None:
    two.wire.create_topic(topic, partitions=partitions)
    for index in range(partitions):
        for number in range(COUNT):
            record = Record(0, TIME + number, None, b"%d" % number, [])
            assert two.wire.produce(topic, [record], index).error_code == 0


def check(two: Directories, topic: str, index: int = 0) -> None:
    fetched = two.wire.fetch(topic, 0, index)
    assert (fetched.high_watermark, fetched.error_code) == (COUNT, 0)
    data = bytes(fetched.records or b"")
    values = [r.value for batch in read_batches(data) for r in read_records(data, batch)]
    assert values == [b"%d" % number for number in range(COUNT)]


def test_a_log_moves_and_comes_back(two: Directories) -> None:
    fill(two, "moving")
    [(start, _, _)] = two.places("moving")[0]
    assert two.ask(two.other(start), "moving") is ErrorCode.NONE
    two.wait("moving", 0, two.other(start))
    check(two, "moving")
    assert two.ask(two.other(start), "moving") is ErrorCode.NONE
    assert two.ask(start, "moving") is ErrorCode.NONE
    two.wait("moving", 0, start)
    check(two, "moving")


def test_what_cannot_move(two: Directories) -> None:
    fill(two, "staying")
    root = two.roots[0]
    assert two.ask("/nowhere", "staying") is ErrorCode.LOG_DIR_NOT_FOUND
    assert two.ask(root + "/", "staying") is ErrorCode.LOG_DIR_NOT_FOUND
    assert two.ask(root, "staying", 7) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert two.ask(root, "nobody") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert two.ask(root, "x" * 249) is ErrorCode.INVALID_TOPIC_EXCEPTION
    check(two, "staying")


@pytest.mark.parametrize("number", [0, 1])
def test_a_wish_for_a_topic_to_come(two: Directories, number: int) -> None:
    topic = f"wished-{number}"
    for index in range(3):
        wished = two.ask(two.roots[number], topic, index)
        assert wished is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    fill(two, topic, 3)
    assert {place for places in two.places(topic).values() for place in places} == {
        (two.roots[number], 0, False)
    }


def test_kafka_reassign_partitions_and_kafka_log_dirs(two: Directories) -> None:
    fill(two, "tools", 2)
    targets = {}
    moves = []
    for index in range(2):
        [(start, _, _)] = two.places("tools")[index]
        targets[index] = two.other(start)
        moves.append(
            {"topic": "tools", "partition": index, "replicas": [1], "log_dirs": [targets[index]]}
        )
    plan = two.directory / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    words = ("--reassignment-json-file", str(plan))
    executed = two.tool(REASSIGN, *words, "--execute")
    for index, target in targets.items():
        started = f"moving log directory to {target} for replica tools-{index} with broker 1"
        assert f"Successfully started {started}" in executed
        two.wait("tools", index, target)
        check(two, "tools", index)
    verified = two.tool(REASSIGN, *words, "--verify")
    for index in range(2):
        assert f"replica tools-{index}-1 completed successfully." in verified
    printed = two.tool(LOG_DIRS, "--describe", "--topic-list", "tools").splitlines()[-1]
    found = {
        partition["partition"]: (directory["logDir"], partition["isFuture"])
        for directory in json.loads(printed)["brokers"][0]["logDirs"]
        for partition in directory["partitions"]
    }
    assert found == {f"tools-{index}": (target, False) for index, target in targets.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_metadata_log_knows_where_logs_are(tmp_path: Path, kind: str) -> None:
    with run(kind, tmp_path) as two:
        fill(two, "known", 3)
        wait_until_known(two, "known")
        [(start, _, _)] = two.places("known")[1]
        assert two.ask(two.other(start), "known", 1) is ErrorCode.NONE
        two.wait("known", 1, two.other(start))
        wait_until_known(two, "known")


def wait_until_known(two: Directories, topic: str) -> None:
    """Wait until the metadata log says where the logs are."""
    ids = {root: (directory_id(Path(root)),) for root in two.roots}
    places = {index: ids[root] for index, [(root, _, _)] in two.places(topic).items()}
    deadline = time.monotonic() + DEADLINE_SECONDS
    while directories(two.directory / "data" / "__cluster_metadata-0", topic) != places:
        assert time.monotonic() < deadline, "the metadata log says otherwise"
        time.sleep(0.05)


def directories(log: Path, name: str) -> dict[int, tuple[bytes, ...]]:
    image = ClusterImage()
    for segment in sorted(log.glob("*.log")):
        for _, records in replayable(segment.read_bytes()):
            for record in records:
                image.replay(record)
    topic = image.topics.find(name)
    assert topic is not None
    return {index: partition.directories for index, partition in topic.partitions.items()}


def directory_id(root: Path) -> bytes:
    path = root / META_PROPERTIES
    found = parse_meta_properties(str(path), path.read_bytes()).directory_id
    assert found is not None
    return found
