"""Opening a log directory as a broker does, and reading it as a consumer does."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from moldau._native.records import Batch, Record, read_batches
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    LOG_STARTS,
    RECOVERY_POINTS,
    parse_offsets,
)
from moldau.log.config import LogConfig
from moldau.log.extents import Isolation
from moldau.records.batch import read_records
from moldau.records.control import ControlType, read_control_record
from moldau.runtime.disk import FileDisk
from tests.conformance.apache_kafka import ApacheKafka
from tests.unit.log.logs import TestLog

CLIENT = Path(__file__).parent / "java" / "LogClient.java"
FETCH_BYTES = 5000  # small, so that fetches begin and end anywhere in a transaction


def open_log(root: Path, topic: str, config: LogConfig | None = None) -> TestLog:
    """Open partition 0 of `topic` as the checkpoints and the marker in `root` have it."""
    log = TestLog(FileDisk(root).waiting(), config, directory=f"{topic}-0")
    partition = TopicPartition(topic, 0)
    log.recovery_point = _offset(root / RECOVERY_POINTS, partition)
    log.log_start = _offset(root / LOG_STARTS, partition)
    if (root / CLEANED_OFFSETS).exists():
        log.compacted_to = _offset(root / CLEANED_OFFSETS, partition)
    log.reopen(is_clean=(root / CLEAN_SHUTDOWN).exists())
    return log


def _offset(path: Path, partition: TopicPartition) -> Offset:
    return parse_offsets(path.name, path.read_bytes()).get(partition, Offset(0))


def consumed(log: TestLog, isolation: Isolation) -> Iterator[str]:
    """Fetch from the beginning on; yield the records in the words of LogClient.java."""
    offset = log.log.log_start
    while True:
        read = log.log.read(offset, bytes_max=FETCH_BYTES, isolation=isolation)
        if read.extent is None:
            return
        data = log.disk.read(*read.extent)
        batches = read_batches(data)
        for batch in _visible(data, batches, read.aborted):
            for record in read_records(data, batch):
                if record.offset >= offset:
                    yield _line(batch, record)
        offset = Offset(batches[-1].last_offset + 1)


def _visible(
    data: bytes, batches: Sequence[Batch], aborted: Sequence[AbortedTransaction]
) -> Iterator[Batch]:
    """Leave out control batches, and those of the aborted transactions that a fetch names."""
    begins = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    skipped = set()
    for batch in batches:
        while begins and begins[-1].first_offset <= batch.last_offset:
            skipped.add(begins.pop().producer_id)
        if batch.is_control:
            (record,) = read_records(data, batch)
            if read_control_record(record).type == ControlType.ABORT:
                skipped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in skipped):
            yield batch


def _line(batch: Batch, record: Record) -> str:
    headers = [f"{_hex(name.encode())}={_hex(value)}" for name, value in record.headers]
    words = [
        record.offset,
        "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        record.timestamp,
        batch.leader_epoch,
        _hex(record.key),
        _hex(record.value),
        *headers,
    ]
    return " ".join(map(str, words))


def _hex(data: bytes | None) -> str:
    return "-" if data is None else f"x{data.hex()}"


class KafkaView:
    """What Kafka's consumers see of a topic: everything, what is committed, and by time."""

    def __init__(self, lines: Sequence[str]) -> None:
        found = {kind: [line[2:] for line in lines if line[0] == kind] for kind in "uct"}
        end, *self.everything = found["u"]
        stable_end, *self.committed = found["c"]
        self.end = int(end.removeprefix("end "))
        self.stable_end = int(stable_end.removeprefix("end "))
        self.by_time = found["t"]

    def check(self, log: TestLog) -> None:
        """Assert that `log` shows the same, record for record."""
        assert (log.log.high_watermark, log.log.stable_offset) == (self.end, self.stable_end)
        assert list(consumed(log, Isolation.HIGH_WATERMARK)) == self.everything
        assert list(consumed(log, Isolation.STABLE)) == self.committed
        for line in self.by_time:
            target = int(line.split()[0])
            found = log.log.find_by_timestamp(target)
            words = (target, "none") if found is None else (target, *found[1::-1], found[2])
            assert " ".join(map(str, words)) == line


def consume(
    kafka: ApacheKafka, topics: Sequence[str], timestamps: Sequence[int]
) -> dict[str, KafkaView]:
    """Read topics with Kafka's consumer, and look up timestamps."""
    arguments = ("read", kafka.bootstrap_servers, ",".join(topics), *map(str, timestamps))
    lines = kafka.java(str(CLIENT), *arguments).splitlines()
    return {
        topic: KafkaView([line[len(topic) + 1 :] for line in lines if line.startswith(f"{topic} ")])
        for topic in topics
    }


def produce(kafka: ApacheKafka, topics: Sequence[str], *, seed: int, timestamp: int) -> None:
    """Fill topics with Kafka's producer."""
    arguments = ("produce", kafka.bootstrap_servers, ",".join(topics), str(seed), str(timestamp))
    kafka.java(str(CLIENT), *arguments)
