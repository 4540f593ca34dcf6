"""Logs for compaction's tests: batches as values, segments on a disk, and back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from moldau._native.records import Batch, BatchWriter, decode_records, read_batches
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset, ProducerId, TopicPartition
from moldau.log.aborted_index import AbortedIndex, AbortedTransaction
from moldau.log.compaction.plan import ClosedSegment, LastRecord, LogView
from moldau.log.compaction.segment_reader import records_of
from moldau.log.config import LogConfig
from moldau.log.file_names import (
    ABORTED_INDEX,
    LOG,
    OFFSET_INDEX,
    TIME_INDEX,
    parse_name,
    segment_path,
)
from moldau.log.index_pages import PageCache
from moldau.log.offset_index import OffsetIndex
from moldau.log.time_index import TimeIndex
from moldau.records.compression import compress

PARTITION = TopicPartition("orders", 0)
DIRECTORY = "orders-0"
TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x10, 0x20, 0x40
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Row:
    """One record."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = NOW_MS
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Rows:
    """One batch; `horizon` is its delete horizon."""

    base_offset: int
    last_offset: int
    rows: tuple[Row, ...]
    codec: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    horizon: int | None = None
    leader_epoch: int = 3

    @property
    def is_abort(self) -> bool:
        return self.is_control and self.rows[0].key == b"\0\0\0\0"


def data(base_offset: int, *pairs: tuple[bytes | None, bytes | None], **fields: object) -> Rows:
    """Make a batch of records with these keys and values."""
    rows = tuple(Row(base_offset + n, k, v, NOW_MS + n) for n, (k, v) in enumerate(pairs))
    return replace(Rows(base_offset, base_offset + len(pairs) - 1, rows), **fields)  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, *, is_abort: bool) -> Rows:
    """Make the batch that ends a transaction."""
    key = b"\0\0\0\0" if is_abort else b"\0\0\0\1"
    return Rows(
        offset,
        offset,
        (Row(offset, key, b"\0\0\0\0\0\0"),),
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def encode(rows: Rows) -> bytes:
    """Return the batch's bytes."""
    writer = BatchWriter(base_offset=rows.base_offset, base_timestamp=rows.horizon)
    for row in rows.rows:
        writer.append_at(row.offset, row.timestamp, row.key, row.value, row.headers)
    flags = TRANSACTIONAL * rows.is_transactional | CONTROL * rows.is_control
    return writer.finish(
        codec=rows.codec,
        compress=partial(compress, rows.codec) if rows.codec else None,
        leader_epoch=rows.leader_epoch,
        producer_id=rows.producer_id,
        producer_epoch=rows.producer_epoch,
        base_sequence=rows.base_sequence,
        attributes=flags | (DELETE_HORIZON if rows.horizon is not None else 0),
        last_offset=rows.last_offset,
    )


def decode(batch: Batch, content: bytes) -> Rows:
    """Return a batch as a value."""
    records = decode_records(records_of(content, batch), batch)
    assert not records or batch.max_timestamp == max(record.timestamp for record in records)
    return Rows(
        batch.base_offset,
        batch.last_offset,
        tuple(Row(r.offset, r.key, r.value, r.timestamp, r.headers) for r in records),
        codec=batch.codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        horizon=batch.base_timestamp if batch.has_delete_horizon else None,
        leader_epoch=batch.leader_epoch,
    )


@dataclass
class Log:
    """A partition's closed segments on a disk; the active one is empty and begins at `end`."""

    disk: Disk
    end: int
    config: LogConfig = field(default_factory=LogConfig)
    last_records: dict[int, LastRecord] = field(default_factory=dict)
    active_aborted: tuple[AbortedTransaction, ...] = ()

    def write(
        self, segments: Sequence[Sequence[Rows]], aborted: Iterable[AbortedTransaction]
    ) -> None:
        """Write segments, each beginning with its first batch; later the log is read back."""
        self.disk.make_directory(DIRECTORY)
        bases = [Offset(batches[0].base_offset) for batches in segments]
        for number, batches in enumerate(segments):
            base = bases[number]
            following = bases[number + 1] if number + 1 < len(bases) else self.end
            self.disk.append(segment_path(DIRECTORY, base), [encode(rows) for rows in batches])
            self._index(base)
            index = AbortedIndex(self.disk, segment_path(DIRECTORY, base, ABORTED_INDEX), base)
            for entry in sorted(aborted, key=lambda a: a.last_offset):
                if base <= entry.last_offset < following:
                    index.add(entry)
            index.write()

    def _index(self, base: Offset) -> None:
        cache = PageCache(1 << 16)
        offsets = OffsetIndex(self.disk, segment_path(DIRECTORY, base, OFFSET_INDEX), base, cache)
        times = TimeIndex(self.disk, segment_path(DIRECTORY, base, TIME_INDEX), base, cache)
        offsets.reset()
        times.reset()
        content = self.content(base)
        for batch in read_batches(content):
            if batch.position:
                offsets.add(Offset(batch.last_offset), batch.position)  # type: ignore[arg-type]
            times.add(batch.max_timestamp, Offset(batch.last_offset))
        offsets.seal()
        times.seal()

    def content(self, base: int, suffix: str = LOG) -> bytes:
        path = segment_path(DIRECTORY, base, suffix)
        return self.disk.read(path, 0, self.disk.size(path))

    def bases(self) -> list[Offset]:
        names = [parse_name(name) for name in self.disk.list(DIRECTORY)]
        return sorted(n.base_offset for n in names if n and n.suffix == LOG and not n.state)

    def read(self) -> list[Rows]:
        """Return all batches of the log."""
        found = []
        for base in self.bases():
            content = self.content(base)
            batches = read_batches(content)
            assert sum(batch.size for batch in batches) == len(content)
            found += [decode(batch, content) for batch in batches]
        return found

    def aborted(self) -> list[AbortedTransaction]:
        found = []
        for base in self.bases():
            index = AbortedIndex(self.disk, segment_path(DIRECTORY, base, ABORTED_INDEX), base)
            index.check()
            found += index.collect(Offset(0), Offset(1 << 40))[0]
        return found

    def view(self, log_start: int = 0, stable: int | None = None) -> LogView:
        segments = []
        for base in self.bases():
            if base == self.end:  # the active one
                break
            content = self.content(base)
            batches = read_batches(content)
            segments.append(
                ClosedSegment(
                    base,
                    len(content),
                    len(self.content(base, OFFSET_INDEX)),
                    len(self.content(base, TIME_INDEX)),
                    max((batch.max_timestamp for batch in batches), default=-1),
                    batches[0].max_timestamp if batches else -1,
                )
            )
        end = Offset(self.end)
        return LogView(
            PARTITION,
            DIRECTORY,
            self.config,
            log_start=Offset(log_start),
            stable_offset=end if stable is None else Offset(stable),
            log_end=end,
            active_base_offset=end,
            segments=tuple(segments),
            last_records=self.last_records,
            active_aborted=self.active_aborted,
        )


def aborted_by(batches: Iterable[Rows]) -> list[AbortedTransaction]:
    """Return what the index of aborted transactions says about a log."""
    begun: dict[int, int] = {}
    found = []
    for rows in batches:
        if rows.is_control:
            first = begun.pop(rows.producer_id, None)
            if rows.is_abort and first is not None:
                stable = min([*begun.values(), rows.last_offset + 1])
                found.append(
                    AbortedTransaction(
                        ProducerId(rows.producer_id),
                        Offset(first),
                        Offset(rows.last_offset),
                        Offset(stable),
                    )
                )
        elif rows.is_transactional:
            begun.setdefault(rows.producer_id, rows.base_offset)
    return found


def random_log(random: Random) -> list[Rows]:
    """Make batches in order: plain, idempotent and transactional ones, markers, gaps."""
    batches: list[Rows] = []
    offset = 0
    begun: set[int] = set()
    for _ in range(random.randint(1, 14)):
        if begun and random.random() < 0.2:
            producer_id = random.choice(sorted(begun))
            begun.discard(producer_id)
            batches.append(marker(offset, producer_id, is_abort=random.random() < 0.5))
        else:
            batches.append(_random_batch(random, offset, begun))
        offset = batches[-1].last_offset + 1
    for producer_id in sorted(begun):
        batches.append(marker(offset, producer_id, is_abort=random.random() < 0.5))
        offset += 1
    return batches


def _random_batch(random: Random, offset: int, begun: set[int]) -> Rows:
    producer_id = random.choice((-1, -1, 7, 8, 9))
    is_transactional = producer_id in begun or (producer_id >= 0 and random.random() < 0.5)
    if is_transactional:
        begun.add(producer_id)
    rows = []
    start = offset
    for _ in range(random.randint(1, 4)):
        key = random.choice((None, b"", b"a", b"b", b"c", b"key-d"))
        value = random.choice((None, None, b"", b"1", b"a longer value"))
        headers = random.choice(((), (("h", b"1"), ("n", None))))
        rows.append(Row(offset, key, value, NOW_MS + random.randint(-50_000, 50_000), headers))
        offset += random.choice((1, 1, 1, 3))
    return Rows(
        start,
        offset - 1,
        tuple(rows),
        codec=random.choice((0, 0, 0, 1, 2, 3, 4)),
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=start if producer_id >= 0 else -1,
        is_transactional=is_transactional,
    )


def random_segments(random: Random, batches: Sequence[Rows]) -> list[list[Rows]]:
    """Divide a log into segments."""
    segments: list[list[Rows]] = []
    for rows in batches:
        if not segments or random.random() < 0.3:
            segments.append([])
        segments[-1].append(rows)
    return segments
