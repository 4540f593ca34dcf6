"""A log of ours with everything in it that a log may have, and what a reader must find there."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from moldau._native.records import Record, check_batches
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.config import LogConfig
from moldau.log.producers import Origin
from moldau.records.batch import TRANSACTIONAL, build_batch, validate
from moldau.records.compression import Codec
from moldau.records.control import build_end_transaction
from moldau.runtime.disk import FileDisk
from tests.unit.log.logs import START_MS, TestLog

IDEMPOTENT = 1_000_000  # far from what a broker gives out
TRANSACTIONS = (2_000_000, 2_000_001, 2_000_002)
COORDINATOR_EPOCH = 7
SMALL = LogConfig(segment_bytes=16_000, index_interval_bytes=500)


@dataclass
class SampleBatch:
    """A batch as it was given to the log, its records with the offsets that they must get."""

    records: list[Record]
    codec: Codec = Codec.NONE
    producer_id: int = -1
    base_sequence: int = -1
    marker: str | None = None  # "COMMIT" or "ABORT"
    is_aborted: bool = False
    append_time: int = -1

    @property
    def producer_epoch(self) -> int:
        return -1 if self.producer_id < 0 else 3

    @property
    def is_transactional(self) -> bool:
        return self.producer_id in TRANSACTIONS

    @property
    def time_type(self) -> str:
        return "CreateTime" if self.append_time < 0 else "LogAppendTime"

    @property
    def max_timestamp(self) -> int:
        return max(self.timestamp_of(record) for record in self.records)

    def timestamp_of(self, record: Record) -> int:
        return record.timestamp if self.append_time < 0 else self.append_time


@dataclass
class SampleLog:
    """The log in `root`, filled batch by batch."""

    root: Path
    config: LogConfig = SMALL
    start_ms: int = START_MS
    batches: list[SampleBatch] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.owner = TestLog(FileDisk(self.root).waiting(), self.config)
        self.owner.now = Instant(0.0, self.start_ms)
        self.random = Random(0)
        self._sequences: dict[int, int] = {}
        self._open: dict[int, list[SampleBatch]] = {}

    @property
    def path(self) -> Path:
        """The partition's directory."""
        return self.root / self.owner.log.directory

    @property
    def stable_offset(self) -> Offset:
        """Where the first open transaction begins, or the log ends."""
        begun = [Offset(batches[0].records[0].offset) for batches in self._open.values()]
        return min(begun, default=Offset(self.owner.log.log_end))

    def fill(self, turns: int) -> None:
        """Append with all codecs and kinds of producers; transactions end one way or the other."""
        for turn in range(turns):
            self.owner.tick(self.random.randrange(1, 50))
            producer_id = self.random.choice([-1, IDEMPOTENT, *TRANSACTIONS])
            if producer_id in self._open and self.random.random() < 0.4:
                self.end_transaction(producer_id, commit=self.random.random() < 0.5)
            else:
                self.add(Codec(turn % len(Codec)), producer_id)
            if turn % 3 == 0:
                self.owner.commit()
        self.owner.commit()

    def add(self, codec: Codec, producer_id: int = -1) -> SampleBatch:
        """Append a batch of random records."""
        count = self.random.choice([1, 2, 5, 40])
        end = self.owner.log.log_end
        batch = SampleBatch([self._record(end + n) for n in range(count)], codec, producer_id)
        if producer_id >= 0:
            batch.base_sequence = self._sequences.get(producer_id, 0)
            self._sequences[producer_id] = batch.base_sequence + count
        if batch.is_transactional:
            self._open.setdefault(producer_id, []).append(batch)
        data = self.encode(batch)
        self._append(batch, data, validate(data), Origin.CLIENT)
        return batch

    def encode(self, batch: SampleBatch) -> bytearray:
        """Return the bytes that a client sends for `batch`, with offsets from 0."""
        first = batch.records[0].offset
        records = [
            Record(r.offset - first, r.timestamp, r.key, r.value, r.headers) for r in batch.records
        ]
        return bytearray(
            build_batch(
                records,
                codec=batch.codec,
                attributes=TRANSACTIONAL if batch.is_transactional else 0,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
            )
        )

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Append a marker."""
        begun = self._open.pop(producer_id)
        now = self.owner.now.wall_ms
        end = self.owner.log.log_end
        record = Record(end, now, b"\0" * 4, b"\0" * 6)
        for batch in begun:
            batch.is_aborted = not commit
        if not commit:
            stable = self.stable_offset if self._open else Offset(end + 1)
            first = Offset(begun[0].records[0].offset)
            self.aborted.append(AbortedTransaction(ProducerId(producer_id), first, end, stable))
        batch = SampleBatch([record], producer_id=producer_id)
        batch.marker = "COMMIT" if commit else "ABORT"
        data = bytearray(
            build_end_transaction(
                commit=commit,
                coordinator_epoch=COORDINATOR_EPOCH,
                producer_id=producer_id,
                producer_epoch=batch.producer_epoch,
                timestamp=now,
            )
        )
        self._append(batch, data, check_batches(data), Origin.COORDINATOR)

    def _append(self, batch: SampleBatch, data: bytearray, checked: list, origin: Origin) -> None:
        log = self.owner.log
        appended = log.append(data, checked, leader_epoch=0, now=self.owner.now, origin=origin)
        assert appended.base_offset == batch.records[0].offset
        batch.append_time = appended.append_time_ms
        self.batches.append(batch)

    def _record(self, offset: int) -> Record:
        random = self.random
        headers = [
            (f"h{n}", random.choice([None, b"", b"header"])) for n in range(random.randrange(3))
        ]
        return Record(
            offset,
            self.owner.now.wall_ms - random.randrange(100),
            random.choice([None, b"", b"key%d" % random.randrange(50)]),
            random.choice([None, b"", b"value-%d " % offset * random.randrange(1, 30)]),
            headers,
        )
