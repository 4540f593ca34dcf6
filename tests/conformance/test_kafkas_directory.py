"""Directories that Apache Kafka 4.3.1 has written open here, record for record."""

import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from moldau._native.producers import ProducerState
from moldau.kernel.ids import TopicPartition
from moldau.log.checkpoints import CLEANED_OFFSETS, parse_offsets
from moldau.log.config import LogConfig
from moldau.log.producer_snapshots import decode_snapshot
from moldau.runtime.disk import FileDisk
from moldau.simulation.laws.log import check_log, check_producers
from tests.conformance.apache_kafka import ApacheKafka, apache_kafka
from tests.conformance.log_reading import KafkaView, consume, open_log, produce
from tests.unit.log.logs import TestLog

SEGMENTS = {"internal.segment.bytes": "16000", "index.interval.bytes": "500"}
TOPICS = {
    "events": SEGMENTS,
    "stamped": {**SEGMENTS, "message.timestamp.type": "LogAppendTime"},
    "state": {**SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
CONFIG = LogConfig(segment_bytes=16_000, index_interval_bytes=500)
CONFIGS = {"state": replace(CONFIG, cleanup_policy=frozenset({"compact"}))}
COMPACTED_SECONDS_MAX = 120
CLEANER_REST_SECONDS = 1.5  # it looks for work ten times a second


@dataclass
class Left:
    """A data directory as Kafka left it, and what its consumers had seen before."""

    root: Path
    views: dict[str, KafkaView] = field(default_factory=dict)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Left]:
    folder = tmp_path_factory.mktemp("kafka")
    settings = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
    ends = {name: Left(folder / name) for name in ("stopped", "killed")}
    now_ms = time.time_ns() // 1_000_000
    with apache_kafka(folder / "node", settings) as kafka:
        for topic, configs in TOPICS.items():
            kafka.create_topic(topic, configs)
        for seed, (name, end) in enumerate(ends.items()):
            timestamp = now_ms - 1_000_000 * (2 - seed)
            cleaned_before = cleaned_offset(kafka)
            produce(kafka, list(TOPICS), seed=seed, timestamp=timestamp)
            wait_for_compaction(kafka, cleaned_before)
            targets = [0, *range(timestamp, timestamp + 50_000, 5000), now_ms * 2]
            while True:
                cleaned = cleaned_offset(kafka)
                end.views = consume(kafka, list(TOPICS), targets)
                if name == "stopped":
                    kafka.stop()
                else:
                    kafka.kill()
                if cleaned_offset(kafka) == cleaned:
                    break
                kafka.start()  # the cleaner did more since: its records are others
            shutil.copytree(kafka.data_directory, end.root)
            if name == "stopped":
                kafka.start()
    return ends


def wait_for_compaction(kafka: ApacheKafka, before: int) -> None:
    """Wait until the cleaner has been at the compacted topic beyond `before`, and rests."""
    deadline = time.monotonic() + COMPACTED_SECONDS_MAX
    cleaned, since = before, deadline
    while cleaned == before or time.monotonic() - since < CLEANER_REST_SECONDS:
        assert time.monotonic() < deadline, "nothing was compacted"
        if cleaned != (cleaned := cleaned_offset(kafka)):
            since = time.monotonic()
        time.sleep(0.05)


def cleaned_offset(kafka: ApacheKafka) -> int:
    path = kafka.data_directory / CLEANED_OFFSETS
    if not path.exists():
        return 0
    return parse_offsets(path.name, path.read_bytes()).get(TopicPartition("state", 0), 0)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_it_opens_and_reads_back(left: dict[str, Left], end: str, topic: str) -> None:
    # Only a clean shutdown cuts the indexes to what is in them.
    (*_, index) = sorted((left[end].root / f"{topic}-0").glob("*.index"))
    assert (index.stat().st_size > 1 << 20) == (end == "killed")
    view = left[end].views[topic]
    assert len(view.committed) < len(view.everything)
    assert (len(view.everything) < view.end // 2) == (topic == "state")
    log = open_log(left[end].root, topic, CONFIGS.get(topic))
    assert log.notices == []
    view.check(log)
    check_log(log.log, log.disk)
    check_producers(log.log, log.disk)


@pytest.mark.parametrize("topic", ["events", "stamped"])
def test_what_is_made_anew_is_what_kafka_had_written(
    left: dict[str, Left], tmp_path: Path, topic: str
) -> None:
    partition = f"{topic}-0"
    shutil.copytree(left["stopped"].root / partition, tmp_path / partition)
    before = derived_files(tmp_path / partition)
    assert sum(name.endswith(".index") for name in before) > 5
    assert any(name.endswith(".txnindex") for name in before)
    log = TestLog(FileDisk(tmp_path).waiting(), CONFIG, directory=partition)
    log.reopen()  # without a checkpoint, everything is checked and built
    log.close()
    after = derived_files(tmp_path / partition)
    assert after.keys() == before.keys()
    for name, data in before.items():
        path = f"{partition}/{name}"
        if name.endswith(".snapshot"):
            assert producers_in(path, after[name]) == producers_in(path, data)
        else:
            assert after[name] == data, name


def derived_files(folder: Path) -> dict[str, bytes]:
    """Return all files that follow from the records, but for empty ones."""
    kinds = (".index", ".timeindex", ".txnindex", ".snapshot", "-checkpoint")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {name: data for name, data in files.items() if data and name.endswith(kinds)}


def producers_in(path: str, snapshot: bytes) -> dict[int, ProducerState]:
    return {state.producer_id: state for state in decode_snapshot(path, snapshot)}
