"""Kafka's UnifiedLog and ours under the same script: the same answers, and the same files."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from moldau._native.producers import ProducerState
from moldau._native.records import Batch, Record, check_batches, read_batches
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError, OffsetOutOfRangeError, ProducerError
from moldau.log.extents import Isolation
from moldau.log.producer_snapshots import decode_snapshot
from moldau.log.producers import Origin
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import TRANSACTIONAL, build_batch, validate
from moldau.records.compression import Codec
from moldau.records.control import build_end_transaction
from moldau.runtime.disk import FileDisk
from tests.conformance.jars import run_java
from tests.unit.log.logs import DIRECTORY, START_MS, TestLog

STEPS = 1500
ISOLATIONS = {
    "LOG_END": Isolation.LOG_END,
    "HIGH_WATERMARK": Isolation.HIGH_WATERMARK,
    "TXN_COMMITTED": Isolation.STABLE,
}
BASE = LogConfig(
    segment_bytes=6000,
    index_interval_bytes=400,
    max_message_bytes=3000,
    segment_ms=3000,
    retention_ms=20_000,
    message_timestamp_before_max_ms=5000,
    message_timestamp_after_max_ms=1000,
)
CONFIGS = {
    "create time": BASE,
    "append time": replace(BASE, message_timestamp_type="LogAppendTime"),
    "small indexes": replace(BASE, segment_bytes=100_000, segment_index_bytes=96),
    "by size": replace(BASE, retention_ms=-1, retention_bytes=20_000),
    "compacted": replace(BASE, cleanup_policy=frozenset({"compact"})),
}


def settings_of(config: LogConfig) -> list[str]:
    names = {
        "index.interval.bytes": config.index_interval_bytes,
        "internal.segment.bytes": config.segment_bytes,
        "max.message.bytes": config.max_message_bytes,
        "message.timestamp.after.max.ms": config.message_timestamp_after_max_ms,
        "message.timestamp.before.max.ms": config.message_timestamp_before_max_ms,
        "message.timestamp.type": config.message_timestamp_type,
        "retention.bytes": config.retention_bytes,
        "retention.ms": config.retention_ms,
        "segment.index.bytes": config.segment_index_bytes,
        "segment.ms": config.segment_ms,
        "cleanup.policy": ",".join(config.cleanup_policy),
    }
    return [f"{name}={value}" for name, value in names.items()]


class Script:
    """Random moves, with our answers to them."""

    def __init__(self, root: Path, config: LogConfig, seed: int) -> None:
        self.random = Random(seed)
        self.log = TestLog(FileDisk(root).waiting(), config)
        self.lines: list[str] = []
        self.answers: list[str] = []
        self.data = bytearray()
        self.cut_segments: set[int] = set()
        self.ends: list[int] = []  # of the batches
        self.epoch = 0
        self.epochs: dict[int, int] = {}  # of the producers
        self.sequences: dict[int, int] = {}
        self.say(f"time {START_MS}", "")

    def say(self, line: str, answer: str) -> None:
        self.lines.append(line)
        self.answers.append(f"{self.log.log.stable_offset} {answer}")

    def run(self, steps: int) -> None:
        moves = {
            self.append: 60,
            self.read: 40,
            self.tick: 20,
            self.watermark: 15,
            self.lookup: 10,
            self.end_transaction: 10,
            self.retention: 2,
            self.start: 1,
            self.lead: 2,
            # After a cut Kafka counts the bytes to the next index entry from 0, and we do not.
            self.truncate: int(self.log.config.segment_index_bytes > 1000),
        }
        for _ in range(steps):
            self.random.choices(list(moves), list(moves.values()))[0]()
        self.say("state", self.state())
        self.log.close()

    def tick(self) -> None:
        self.log.tick(self.random.choice([1, 50, 200, 1500]))
        self.say(f"time {self.log.now.wall_ms}", "")

    def lead(self) -> None:
        self.epoch += 1
        self.log.log.begin_epoch(self.epoch)
        self.log.sync()
        self.say(f"epoch {self.epoch}", "")

    def append(self) -> None:
        random = self.random
        now = self.log.now.wall_ms
        producer_id = random.choice([-1, -1, 1, 2, 100, 101])
        kind = random.random()
        if kind < 0.06 and producer_id < 0:  # Kafka would forget a producer without a time
            timestamps = [-1]
        elif kind < 0.09:
            timestamps = [now + random.choice([-6000, 2000])]
        else:
            timestamps = range(now - 1500, now + 900)
        is_keyless = random.random() < 0.05
        size = random.choice([10, 100, 1000]) if random.random() < 0.95 else 3500
        records = [
            Record(
                n, random.choice(timestamps), None if is_keyless else b"k", random.randbytes(size)
            )
            for n in range(random.choice([1, 2, 3]))
        ]
        fields = {}
        if producer_id >= 0:
            epoch = self.epochs.setdefault(producer_id, 0)
            sequence = self.sequences.get(producer_id, 0)
            match random.randrange(20):
                case 0:
                    epoch -= 1
                case 1:
                    sequence += 1
                case 2:
                    epoch, sequence = epoch + 1, 0
            fields = {
                "producer_id": producer_id,
                "producer_epoch": max(0, epoch),
                "base_sequence": sequence,
                "attributes": TRANSACTIONAL if producer_id >= 100 else 0,
            }
        data = bytearray(build_batch(records, codec=random.choice(list(Codec)), **fields))
        for _ in range(2 if random.random() < 0.1 else 1):  # some are sent twice
            is_in = self.send(data, Origin.CLIENT)
        if is_in and fields:
            self.epochs[producer_id] = fields["producer_epoch"]
            self.sequences[producer_id] = fields["base_sequence"] + len(records)

    def end_transaction(self) -> None:
        producer_id = self.random.choice([100, 101])
        epoch = self.epochs.get(producer_id)
        if epoch is None:
            return
        data = build_end_transaction(
            commit=self.random.random() < 0.5,
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=self.log.now.wall_ms,
        )
        self.send(bytearray(data), Origin.COORDINATOR)

    def fits(self, batch: Batch) -> bool:
        """Whether the segment that is written has room and time for a batch."""
        tail = self.log.log.segments[-1].tail
        config = self.log.config
        oldest = tail.first_timestamp if tail.first_timestamp >= 0 else tail.created_ms
        newest = max(batch.max_timestamp, self.log.now.wall_ms)
        return (
            tail.position + batch.size <= config.segment_bytes
            and newest - oldest <= config.segment_ms
            and config.segment_index_bytes > 1000
        )

    def is_refused(self, data: bytearray, batch: Batch, origin: Origin) -> bool:
        """Whether the producer's state speaks against a batch, or it is there already."""
        if batch.producer_id < 0:
            return False
        try:
            return self.log.log.producers.check_any(batch, data, origin, 0) is not None
        except ProducerError:
            return True

    def send(self, sent: bytearray, origin: Origin) -> bool:
        data = bytearray(sent)  # appending changes it
        log = self.log.log
        checked = validate(data) if origin is Origin.CLIENT else check_batches(data)
        line = f"append {origin.name} {self.epoch} {len(data)}"
        if not self.fits(checked[0][0]) and self.is_refused(data, checked[0][0], origin):
            return False  # Kafka begins a new segment before it looks at the producer
        self.data += sent
        try:
            done = log.append(
                data, checked, leader_epoch=self.epoch, now=self.log.now, origin=origin
            )
        except (AppendError, ProducerError) as error:
            self.say(line, f"error {error.code}")
            return False
        log.write()
        self.log.sync()
        self.ends.append(done.last_offset + 1)
        self.say(line, f"{done.base_offset} {done.last_offset} {done.append_time_ms}")
        return True

    def watermark(self) -> None:
        log = self.log.log
        ends = [end for end in self.ends if log.high_watermark <= end <= log.log_end]
        log.advance_high_watermark(self.random.choice([log.log_end, *ends]))
        self.say(f"watermark {log.high_watermark}", str(log.high_watermark))

    def read(self) -> None:
        log = self.log.log
        offset = self.random.randint(max(0, log.log_start - 2), log.log_end + 2)
        bytes_max = self.random.choice([1, 500, 3000, 100_000])
        name = self.random.choice(list(ISOLATIONS))
        at_least_one = self.random.random() < 0.8
        line = f"read {offset} {bytes_max} {name} {int(at_least_one)}"
        try:
            read = log.read(
                offset,
                bytes_max=bytes_max,
                isolation=ISOLATIONS[name],
                at_least_one_batch=at_least_one,
            )
        except OffsetOutOfRangeError:
            self.say(line, f"error {ErrorCode.OFFSET_OUT_OF_RANGE.value}")
            return
        if read.extent is None:
            self.say(line, "nothing")
            return
        path, position, length = read.extent
        batches = read_batches(self.log.disk.read(*read.extent))
        last = batches[-1].last_offset if batches else offset
        aborted = ",".join(
            f"{a.producer_id}@{a.first_offset}" for a in read.aborted if a.first_offset <= last
        )
        self.say(line, f"{int(Path(path).stem)} {position} {length} {aborted}")

    def lookup(self) -> None:
        log = self.log.log
        if any(segment.largest_timestamp().timestamp < 0 for segment in log.segments):
            return  # there Kafka takes the time of the file
        target = self.random.randrange(START_MS, self.log.now.wall_ms + 1000)
        found = log.find_by_timestamp(target, Isolation.LOG_END)
        if self.random.random() < 0.1:
            target = -3
            found = log.find_max_timestamp(Isolation.LOG_END)
            if found is None:
                return  # it lies below the log start, which Kafka does not mind
        elif found is not None:
            bases = [s.base_offset for s in log.segments]
            times = [s.largest_timestamp().timestamp >= target for s in log.segments]
            if found.offset >= [*bases, log.log_end][times.index(True) + 1]:
                # Kafka gives up when the first segment with such a time has it below the log start.
                assert log.log_start > bases[0]
                found = None
        answer = "none" if found is None else " ".join(map(str, found))
        self.say(f"lookup {target}", answer)

    def start(self) -> None:
        log = self.log.log
        offset = self.random.randint(log.log_start, log.high_watermark)
        if log.stable_offset < offset:
            # Inside a batch of a transaction, Kafka's stable offset falls below its log start.
            offset = max([end for end in self.ends if end <= offset], default=log.log_start)
        self.say(f"start {offset}", str(log.delete_records(offset)))

    def retention(self) -> None:
        self.log.retain()
        self.log.sync()
        self.log.retain()
        self.say("retention", self.state())

    @property
    def has_unreplicated(self) -> bool:
        """Whether a transaction has ended above the high watermark."""
        return bool(self.log.log.producers._transactions._completed)

    def truncate(self) -> None:
        # Between batches: inside of one, Kafka leaves a gap, and we do not.
        log = self.log.log
        visible = [end for end in self.ends if end <= log.high_watermark]
        ends = [*visible, *self.ends[len(visible) :][: -self.random.randrange(1, 5)]]
        offset = max(log.high_watermark, ends[-1] if ends else 0)
        base = max(s.base_offset for s in log.segments if s.base_offset <= offset)
        if self.has_unreplicated or 0 < base <= log.log_start:
            return  # then Kafka forgets something about transactions or producers, and we do not
        self.ends = ends
        log.truncate_to(offset, self.log.now)
        states = log.producers.states.values()
        self.epochs = {state.producer_id: state.producer_epoch for state in states}
        self.sequences = {state.producer_id: state.next_sequence for state in states}
        self.cut_segments.add(log.segments[-1].base_offset)
        self.say(f"truncate {offset}", self.state())

    def state(self) -> str:
        log = self.log.log
        segments = ",".join(f"{s.base_offset}:{s.size}" for s in log.segments)
        epochs = ",".join(f"{epoch}:{start}" for epoch, start in log._state.epochs.starts)
        return f"{log.log_start} {log.high_watermark} {log.log_end} {segments} {epochs}"


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_script_has_the_same_answers(tmp_path: Path, name: str) -> None:
    config = CONFIGS[name]
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs" / DIRECTORY).mkdir(parents=True)
    script = Script(tmp_path / "ours", config, seed=len(name))
    script.run(STEPS)
    (tmp_path / "script").write_text("\n".join(script.lines))
    (tmp_path / "data").write_bytes(script.data)
    theirs = tmp_path / "theirs" / DIRECTORY
    arguments = [str(theirs), str(tmp_path / "script"), str(tmp_path / "data")]
    done = run_java(tmp_path, "LogMoves", *arguments, *settings_of(config))
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    for number, line in enumerate(script.lines):
        assert (line, script.answers[number]) == (line, answers[number]), f"step {number}"
    compare_files(tmp_path / "ours" / DIRECTORY, theirs, script.cut_segments)


def compare_files(ours: Path, theirs: Path, cut_segments: set[int]) -> None:
    """Assert that both logs have left the same files, but for empty indexes."""
    mine, other = files_in(ours, cut_segments), files_in(theirs, cut_segments)
    assert mine.keys() == other.keys()
    for name, data in mine.items():
        assert data == other[name], name
    # After a cut, Kafka forgets some snapshots and leaves others behind.
    snapshots = [{path.name for path in folder.glob("*.snapshot")} for folder in (ours, theirs)]
    assert max(snapshots[0]) == max(snapshots[1])
    for name in snapshots[0] & snapshots[1]:
        assert producers_in(ours / name) == producers_in(theirs / name)


def files_in(folder: Path, cut_segments: set[int]) -> dict[str, bytes]:
    """Return the files that are not empty, without the sparse indexes of segments that were cut."""
    files = {}
    for path in folder.iterdir():
        is_sparse = path.suffix in {".index", ".timeindex"}
        if path.suffix in {".log", ".txnindex"} or (
            is_sparse and int(path.stem) not in cut_segments
        ):
            files[path.name] = path.read_bytes()
    return {name: data for name, data in files.items() if data}


def producers_in(snapshot: Path) -> dict[int, ProducerState]:
    states = decode_snapshot(snapshot.name, snapshot.read_bytes())
    return {state.producer_id: state for state in states}
