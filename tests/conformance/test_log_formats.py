"""Apache Kafka's own classes read the log files that we write, and we read theirs."""

import random
from pathlib import Path

import pytest

from moldau._native.producers import ProducerState
from moldau._native.records import read_batches
from moldau.kernel.ids import (
    LeaderEpoch,
    Offset,
    Position,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)
from moldau.kernel.uuid_text import uuid_to_text
from moldau.log.aborted_index import AbortedIndex, AbortedTransaction
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    RECOVERY_POINTS,
    find_clean_broker_epoch,
    parse_offsets,
    render_clean_shutdown,
    render_offsets,
)
from moldau.log.errors import ProducerError
from moldau.log.identity import (
    META_PROPERTIES,
    PARTITION_METADATA,
    MetaProperties,
    parse_meta_properties,
    parse_partition_metadata,
    render_meta_properties,
    render_partition_metadata,
)
from moldau.log.index_pages import PageCache
from moldau.log.leader_epochs import LEADER_EPOCH_CHECKPOINT, EpochStart, LeaderEpochs
from moldau.log.markers import find_marker
from moldau.log.offset_index import OffsetIndex
from moldau.log.producer_snapshots import decode_snapshot, encode_snapshot
from moldau.log.producers import Origin, Producers
from moldau.log.time_index import TimeIndex
from moldau.runtime.memory_disk import MemoryDisk
from tests.conformance.jars import run
from tests.unit.log.batches import data_batch_bytes, marker_bytes

BASE = Offset(1000)
NAME = f"{BASE:020}"
DIRECTORY_ID = bytes(range(16))
TOPIC_ID = TopicId(bytes(range(100, 116)))


def indexes(disk: MemoryDisk) -> tuple[OffsetIndex, TimeIndex, AbortedIndex]:
    cache = PageCache(1 << 20)
    return (
        OffsetIndex(disk, f"{NAME}.index", BASE, cache),
        TimeIndex(disk, f"{NAME}.timeindex", BASE, cache),
        AbortedIndex(disk, f"{NAME}.txnindex", BASE),
    )


def test_kafka_reads_ours(tmp_path: Path) -> None:
    disk = MemoryDisk()
    expected = []
    offsets, times, aborted = indexes(disk)
    offsets.reset()
    times.reset()
    for n in range(1, 3000):
        offsets.add(Offset(BASE + 5 * n), Position(4100 * n))
        times.add(10**12 + n, Offset(BASE + 5 * n))
        expected.append(f"index {BASE + 5 * n} {4100 * n}")
    expected += [f"timeindex {10**12 + n} {BASE + 5 * n}" for n in range(1, 3000)]
    for n in range(1, 4):
        entry = AbortedTransaction(
            ProducerId(n), Offset(BASE + n), Offset(BASE + 10 * n), Offset(BASE + n + 1)
        )
        aborted.add(entry)
        expected.append(f"txnindex {' '.join(map(str, entry))}")
    for index in (offsets, times, aborted):
        index.write()
        data = disk.read(index.path, 0, disk.size(index.path))
        (tmp_path / index.path).write_bytes(data)

    states = [
        ProducerState(ProducerId(1), ProducerEpoch(2), 3, 4, Offset(1005), 7, [(6, 1007, 2, 4)]),
        ProducerState(ProducerId(2**63 - 1), ProducerEpoch(32767)),
    ]
    epochs = [EpochStart(LeaderEpoch(0), Offset(0)), EpochStart(LeaderEpoch(9), Offset(1234))]
    checkpoint = {TopicPartition("a.b_c-d", 3): Offset(2**63 - 1)}
    meta = MetaProperties(" a=b:c #!\\d==", 4, DIRECTORY_ID)
    files = {
        f"{NAME}.snapshot": encode_snapshot(states),
        LEADER_EPOCH_CHECKPOINT: LeaderEpochs(epochs).render(),
        RECOVERY_POINTS: render_offsets(checkpoint),
        PARTITION_METADATA: render_partition_metadata(TOPIC_ID),
        CLEAN_SHUTDOWN: render_clean_shutdown(42),
        META_PROPERTIES: render_meta_properties(meta),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    directory = f"directoryId={uuid_to_text(DIRECTORY_ID)}"
    expected += [
        "snapshot 1 2 3 4 1005 1005 1007",
        f"snapshot {2**63 - 1} 32767 -1 -1 -1 -1 -1",
        "epoch 0 0",
        "epoch 9 1234",
        f"checkpoint a.b_c-d-3 {2**63 - 1}",
        f"topic {uuid_to_text(TOPIC_ID)}",
        "clean 42",
        f"meta MetaProperties(version=1, clusterId={meta.cluster_id}, nodeId=4, {directory})",
    ]
    assert run("LogFormats", "read", str(tmp_path)).splitlines() == expected


def test_we_read_kafkas(tmp_path: Path) -> None:
    run("LogFormats", "write", str(tmp_path))
    disk = MemoryDisk()
    for path in tmp_path.iterdir():
        disk.append(path.name, [path.read_bytes()])
    offsets, times, aborted = indexes(disk)
    assert disk.size(offsets.path) == 1 << 16, "the file is as long as Kafka made it"
    assert (offsets.count, times.count) == (2000, 1001)
    offsets.check(end_offset=Offset(BASE + 6001), end_position=Position(4096 * 2001))
    times.check(end_offset=Offset(BASE + 6001))
    aborted.check()
    for n in range(1, 2001):
        assert offsets.lookup(Offset(BASE + 3 * n + 1)) == (BASE + 3 * n, 4096 * n)
    # Of two offsets with one timestamp the first is kept.
    assert times.lookup(1_700_000_000_000 + 500) == (1_700_000_000_500, BASE + 3000)
    assert times.last() == (1_700_000_001_000, BASE + 6000)
    found, complete = aborted.collect(BASE, Offset(BASE + 100))
    assert found == [(7, 1001, 1010, 1011), (8, 1005, 1020, 1006)]
    assert not complete

    def read(name: str) -> tuple[str, bytes]:
        return name, disk.read(name, 0, disk.size(name))

    assert decode_snapshot(*read(f"{NAME}.snapshot")) == [
        ProducerState(ProducerId(7), ProducerEpoch(3), 4, 1234, Offset(1005)),
        ProducerState(ProducerId(8), ProducerEpoch(0)),
    ]
    assert LeaderEpochs.parse(*read(LEADER_EPOCH_CHECKPOINT)).starts == [(0, 0), (5, 1234)]
    assert parse_offsets(*read(RECOVERY_POINTS)) == {("a.b_c-d", 3): 17, ("x", 0): 2**63 - 1}
    topic_id = parse_partition_metadata(*read(PARTITION_METADATA))
    assert topic_id == b"\xff" * 7 + b"\xfe" + bytes(7) + b"\x4d"
    assert find_clean_broker_epoch(read(CLEAN_SHUTDOWN)[1]) == 99
    meta = parse_meta_properties(*read(META_PROPERTIES))
    assert meta == MetaProperties("a=b:c #!\\d==", 4, bytes(7) + b"\x01" + b"\xff" * 8)


class Script:
    """A random series of appends, with our own verdicts on them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.producers = Producers()
        self.end_offset = 0
        self.high_watermark = 0
        self.lines: list[str] = []
        self.batches: list[bytes] = []
        self.verdicts: list[str] = []

    def step(self) -> None:
        kind = self.chance.random()
        if kind < 0.1:
            self.high_watermark = self.chance.randint(self.high_watermark, self.end_offset)
            self.producers.note_committed(Offset(self.high_watermark))
            self.lines.append(f"acknowledge {self.high_watermark}")
            self.conclude("")
        elif kind < 0.25:
            self.end_transaction()
        else:
            self.produce()

    def conclude(self, verdict: str) -> None:
        first = self.producers.first_unstable
        self.verdicts.append(f"{first.first_offset if first else -1}{verdict}")

    def produce(self) -> None:
        producer_id = self.chance.randint(1, 5)
        state = self.producers.states.get(producer_id)
        following = state.next_sequence if state else self.chance.choice((0, 5, 2**31 - 2))
        in_transaction = state is not None and state.transaction_first_offset >= 0
        if producer_id == 5:  # a group coordinator's offsets
            origin, sequence, transactional = Origin.COORDINATOR, -1, self.chance.random() < 0.9
        elif self.chance.random() < 0.1:  # what a leader took, a follower takes as well
            origin, sequence, transactional = Origin.REPLICATION, following, in_transaction
        else:
            kept = [batch[0] - batch[2] for batch in state.batches] if state else []
            origin = Origin.CLIENT
            sequence = self.chance.choice((*(following,) * 12, 0, following + 1, *kept)) % 2**31
            transactional = self.chance.random() < (0.95 if in_transaction else 0.4)
        data = data_batch_bytes(
            producer_id,
            self.epoch(producer_id, 0 if origin is Origin.REPLICATION else 0.1),
            sequence,
            offset=self.end_offset,
            count=self.chance.randint(1, 3),
            transactional=transactional,
            timestamp=self.chance.randint(0, 10**13),
        )
        self.lines.append(f"append {origin.name} -1")
        self.batches.append(data)
        (batch,) = read_batches(data)
        try:
            duplicate = self.producers.check(batch, origin)
        except ProducerError as error:
            self.conclude(f" error {error.code}")
            return
        if duplicate is None:
            self.producers.apply(batch, Offset(0), Position(0))
            self.end_offset = batch.last_offset + 1
            self.conclude(" appended")
        else:
            self.conclude(f" duplicate {' '.join(map(str, duplicate))}")

    def epoch(self, producer_id: int, wrong: float) -> int:
        """Return the producer's epoch, or one beside it."""
        state = self.producers.states.get(producer_id)
        step = self.chance.choice((1, -1)) if self.chance.random() < wrong else 0
        return max(0, (state.producer_epoch if state else 0) + step)

    def end_transaction(self) -> None:
        producer_id = self.chance.randint(1, 5)
        version = self.chance.choice((0, 1, 2))
        data = marker_bytes(
            producer_id,
            self.epoch(producer_id, 0.6),
            offset=self.end_offset,
            abort=self.chance.random() < 0.5,
            coordinator_epoch=self.chance.choice((3, 3, 3, 2, 4)),
            timestamp=self.chance.randint(0, 10**13),
        )
        self.lines.append(f"append COORDINATOR {version}")
        self.batches.append(data)
        (batch,) = read_batches(data)
        marker = find_marker(batch, data)
        assert marker is not None
        try:
            self.producers.check_marker(batch, marker, transaction_version=version)
        except ProducerError as error:
            self.conclude(f" error {error.code}")
            return
        completed = self.producers.apply_marker(batch, marker)
        self.end_offset += 1
        if completed is None:
            self.conclude(" appended")
        else:
            self.conclude(f" completed {' '.join(str(int(field)) for field in completed)}")


@pytest.mark.parametrize("seed", [1])
def test_kafka_judges_batches_as_we_do(tmp_path: Path, seed: int) -> None:
    script = Script(seed)
    for _ in range(20_000):
        script.step()
    kinds = {verdict.split(" ", 1)[1][:10] for verdict in script.verdicts if " " in verdict}
    assert {
        "appended",
        "duplicate ",
        "completed ",
        "error 45",
        "error 47",
        "error 48",
        "error 52",
    } <= kinds

    (tmp_path / "script").write_text("\n".join(script.lines))
    (tmp_path / "batches").write_bytes(b"".join(script.batches))
    arguments = (str(tmp_path / "script"), str(tmp_path / "batches"), str(tmp_path))
    printed = run("ProducerVerdicts", *arguments).splitlines()
    for number, (verdict, ours) in enumerate(zip(printed, script.verdicts, strict=True)):
        assert verdict == ours, f"seed {seed}, line {number}: {script.lines[number]}"

    (snapshot,) = tmp_path.glob("*.snapshot")
    assert snapshot.name == f"{script.end_offset:020}.snapshot"
    theirs = {s.producer_id: s for s in decode_snapshot(snapshot.name, snapshot.read_bytes())}
    states = script.producers.states.values()
    assert theirs == {s.producer_id: s for s in decode_snapshot("ours", encode_snapshot(states))}
