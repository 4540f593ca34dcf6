"""Appends by the kernel beside appends that all go the long way: everything else is the same."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from moldau._native.append import Room, StagedLogs
from moldau._native.records import Record
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import AppendError, StorageFullError
from moldau.log.partition import PartitionLog
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import build_batch
from moldau.records.compression import Codec
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime.memory_disk import MemoryDisk
from tests.reference.append import append_long, is_ordinary
from tests.unit.log.logs import START_MS, TestLog, batch_of

PARTITION = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, max_message_bytes=1500)
CONFIGS = [
    CONFIG,
    CONFIG,
    replace(CONFIG, cleanup_policy=frozenset({"compact"})),
    replace(CONFIG, message_timestamp_type="LogAppendTime"),
    replace(CONFIG, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
    replace(CONFIG, compression_type="gzip"),
]


class Desk:
    """A shell that writes logs in memory."""

    def __init__(self) -> None:
        self.staged = StagedLogs()
        self.room = Room(free_bytes=1 << 40)

    def stage(self, partition: TopicPartition, log: PartitionLog, size: int, now: Instant) -> None:
        if not log.end.enlist(size, now):
            if not self.room.admits(size):
                raise StorageFullError("no room")
            log.end.berth_in(self.staged, self.room, (partition, log))
            log.end.enlist(0, now)

    def write_soon(self) -> None:
        raise AssertionError("nothing is appended by the broker itself")


class Side:
    """One of the two brokers that are compared."""

    def __init__(self, *, is_long: bool) -> None:
        self.is_long = is_long
        self.desk = Desk()
        self.disk = MemoryDisk(capacity_bytes=60_000)
        self.log = TestLog(self.disk, CONFIG, durability=Durability.PAGE_CACHE)
        self.replicas = Replicas(1, lambda *_: True, self.desk)
        self.heard: list[tuple[object, ...]] = []
        self.declined = 0
        self.lead(0)

    def lead(self, epoch: int) -> None:
        self.replicas.lead(PARTITION, TopicId(b"i" * 16), self.log.log, LeaderEpoch(epoch))

    @property
    def replica(self) -> Replica:
        replica = self.replicas.get(PARTITION)
        assert replica is not None
        return replica

    def append(self, data: bytearray, now: Instant, acks: int, number: int) -> object:
        """Return the offset and the bytes as they are appended, or what is wrong."""
        waiter = Waiter(self.heard, number)
        if not self.is_long:
            before, around = self.seen(), bytearray(b"<<") + data + b">>"
            has_room = len(data) <= self.desk.room.free_bytes
            is_known = self.log.log.end.berth is not None
            expected = has_room and is_known and is_ordinary(self.replica, data, now, acks)
            end = len(around) - 2
            offset = self.replica.try_append(memoryview(around), 2, end, now, acks, waiter)
            assert (offset >= 0) == expected
            if offset >= 0:
                return offset, bytes(around[2:-2])
            self.declined += 1
            assert around[2:-2] == data, "what is declined is not changed"
            assert self.seen() == before, "what is declined changes nothing"
        try:
            appended = append_long(self.replica, data, now, acks, waiter)
        except (AppendError, ReplicaError) as error:
            return error.code, str(error)
        return appended.base_offset, bytes(data)

    def write(self) -> object:
        failures = []
        for end in self.desk.staged.take():
            partition, log = end.berth
            try:
                if not ((not self.is_long and end.try_write()) or log.write()):
                    continue
            except AppendError as error:
                failures.append(str(error))
                self.replicas.failed(partition, error)
            else:
                assert end.commit()
        return failures

    def seen(self) -> dict[str, Any]:
        """Everything that the two must have in common."""
        log, traffic = self.log.log, self.replica.traffic
        end = log.end
        files = {name: bytes(content) for name, content in self.disk._files.items()}
        return {
            "files": files,
            "offsets": (log.log_start, log.high_watermark, log.written_offset, log.log_end),
            "producers": {key: repr(state) for key, state in log.producers.states.items()},
            "segments": [(each.base_offset, each.size) for each in log.segments],
            "tail": (end.tail.position, end.tail.max_timestamp, end.tail.entry_count),
            "pieces": [bytes(piece) for piece in end.pieces],
            "epochs": log.latest_epoch,
            "dirty": list(end.dirty.files),
            "room": self.desk.room.free_bytes,
            "waiting": [offset for offset, _ in self.replica.callbacks],
            "heard": list(self.heard),
            "traffic": (traffic.produce_requests, traffic.bytes_in, traffic.messages_in),
            "place": place_of(log),
        }


class Waiter:
    """Waits for an append."""

    def __init__(self, heard: list[tuple[object, ...]], number: int) -> None:
        self.heard = heard
        self.number = number

    def committed(self, _) -> None:
        self.heard.append((self.number, "committed"))

    def lost(self, _, error) -> None:
        self.heard.append((self.number, error.code))


def place_of(log: PartitionLog) -> tuple[object, ...] | None:
    place = log.end.find_place(log.high_watermark)
    return place and (place.offset, place.segment_base_offset, place.position)


def random_batch(chance: Random, sequences: dict[int, int]) -> bytearray:
    """Return a batch that is mostly good."""
    count = chance.choice([1, 1, 2, 5])
    timestamp = START_MS + chance.choice([0, 0, 0, -5000, 5000, 7_200_000])
    size = chance.choice([10, 50, 200, 1500]) if chance.random() < 0.3 else 50
    key = b"k" if chance.random() < 0.9 else None
    fields: dict[str, int] = {}
    if chance.random() < 0.6:
        producer_id = chance.randrange(3)
        sequence = sequences.get(producer_id, 0)
        if chance.random() < 0.15:
            sequence = max(-1, sequence + chance.choice([-2, -1, 1]))
        epoch = chance.choice([0] * 12 + [1])
        fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        sequences[producer_id] = sequence + count
    records = [Record(n, timestamp + n, key, bytes(size)) for n in range(count)]
    kind = chance.randrange(30)
    if kind == 0:
        fields["codec"] = Codec.GZIP
    if kind == 1:
        fields["attributes"] = chance.choice([0x08, 0x10, 0x20, 0x40])
    data = bytearray(build_batch(records, **fields))
    if kind == 2:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if kind == 3:
        del data[chance.randrange(len(data)) :]
    if kind == 4:
        data = data * 2
    if kind == 5:
        data[0:8] = (9).to_bytes(8)
    return data


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_appends_what_the_long_way_would(seed: int) -> None:
    chance = Random(seed)
    ours, theirs = Side(is_long=False), Side(is_long=True)
    sequences: dict[int, int] = {}
    epoch = taken = 0
    for number in range(150):
        now = Instant(number / 10, START_MS + number)
        step = chance.randrange(40)
        if step < 26:
            data = random_batch(chance, sequences)
            acks = chance.choice([-1, 0, 1])
            ours_said = ours.append(bytearray(data), now, acks, number)
            assert ours_said == theirs.append(bytearray(data), now, acks, number)
            taken += isinstance(ours_said[0], int) and ours_said[0] >= 0
        elif step < 36:
            assert ours.write() == theirs.write()
        elif step == 36:
            assert ours.write() == theirs.write()
            epoch += chance.randrange(2)
            for side in (ours, theirs):
                side.lead(epoch)
        elif step == 37:
            config = chance.choice(CONFIGS)
            for side in (ours, theirs):
                side.log.log.config = config
        elif step == 38:
            for side in (ours, theirs):
                side.replica.is_under_min_in_sync = not side.replica.is_under_min_in_sync
        else:
            limit = chance.choice([0, 1000, 1 << 40])
            for side in (ours, theirs):
                side.desk.room.free_bytes = limit
        assert ours.seen() == theirs.seen()
    assert taken > 10
    assert ours.declined < 100


def test_a_full_disk_takes_everything_back() -> None:
    side = Side(is_long=False)
    waiting = len(side.heard)
    for number in range(400):
        data = batch_of(producer_id=1, producer_epoch=0, base_sequence=number, value=bytes(400))
        side.append(data, side.log.now, -1, number)
        if number % 3 == 2 and side.write():
            break
    assert side.heard[-1] == (number, ErrorCode.KAFKA_STORAGE_ERROR)
    assert len(side.heard) - waiting == number + 1
    log = side.log.log
    assert log.log_end == log.written_offset == log.high_watermark == number - 2
    assert log.producers.states[1].next_sequence == number - 2
    assert not side.replica.callbacks


def test_what_is_not_there_is_not_appended() -> None:
    side = Side(is_long=False)
    side.append(batch_of(), side.log.now, 1, 0)
    data, waiter = memoryview(batch_of()), Waiter(side.heard, 1)
    replica = side.replica
    with pytest.raises(ValueError, match="not a range"):
        replica.try_append(data, 0, len(data) + 1, side.log.now, 1, waiter)
    with pytest.raises(BufferError):
        replica.try_append(memoryview(bytes(data)), 0, len(data), side.log.now, 1, waiter)
    assert replica.try_append(data, 0, 20, side.log.now, 1, waiter) == -1
    assert replica.try_append(data, 0, len(data), side.log.now, 1, waiter) == 1
    side.replicas.offline(PARTITION)
    assert replica.try_append(data, 0, len(data), side.log.now, 1, waiter) == -1
    assert replica.log_start == -1
