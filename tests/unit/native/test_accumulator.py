from collections import Counter
from typing import Any

import pytest

from moldau._native.accumulator import ROUND_ROBIN, Accumulator, Delivery, PendingBatch, murmur2
from moldau._native.records import Record, read_batches
from moldau.records.batch import build_batch, read_records, validate
from moldau.records.compression import Codec


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.woken = 0

    def __call__(self) -> float:
        return self.now

    def wake(self) -> None:
        self.woken += 1


def make(clock: Clock | None = None, partitions: int = 4, **settings: Any) -> Accumulator:
    clock = clock or Clock()
    options = {"batch_size": 1000, "buffer_memory": 1 << 20, "record_bytes_max": 1 << 16}
    accumulator = Accumulator(
        linger=0.005,
        clock=clock,
        wake=clock.wake,
        waiting=None,
        seed=7,
        **(options | settings),  # type: ignore[arg-type]
    )
    accumulator.set_topic("t", partitions, range(partitions))
    return accumulator


def test_records_without_a_time_have_that_of_the_clock() -> None:
    accumulator = make(wall_clock=lambda: 1_234)
    for given in (None, 5):
        accumulator.append("t", b"v", partition=0, timestamp_ms=given)
    [batch] = taken(accumulator)
    assert [record.timestamp for record in records(batch)] == [1_234, 5]


def taken(accumulator: Accumulator) -> list[PendingBatch]:
    return accumulator.take(0.0, everything=True)[0]


def records(batch: PendingBatch) -> list[Record]:
    batch.encode(Codec.NONE, None)
    data = batch.stamp(-1, -1, -1)
    validate(data)
    [header] = read_batches(data)
    return read_records(data, header)


def test_the_hash_of_keys_is_kafkas() -> None:
    # From the tests of Kafka's own Utils.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: murmur2(key) for key in known} == {
        key: value % (1 << 32) for key, value in known.items()
    }


def test_what_is_appended_is_in_the_batch() -> None:
    accumulator = make(partitions=1)
    headers = [("a", b"1"), ("b", None)]
    accumulator.append("t", b"v", b"k", 0, 5, headers)
    accumulator.append("t", None, None, 0, 6)
    accumulator.append("t", bytearray(b"w"), memoryview(b"l"), 0, 7, {"c": b""})
    [batch] = taken(accumulator)
    assert (batch.topic, batch.partition, batch.record_count) == ("t", 0, 3)
    assert [(r.timestamp, r.key, r.value, r.headers) for r in records(batch)] == [
        (5, b"k", b"v", (("a", b"1"), ("b", None))),
        (6, None, None, ()),
        (7, b"l", b"w", (("c", b""),)),
    ]


def test_a_full_batch_is_ready_and_a_small_one_lingers() -> None:
    clock = Clock()
    accumulator = make(clock, partitions=1)
    for _ in range(12):
        accumulator.append("t", bytes(90))
    batches, due = accumulator.take(clock.now)
    assert [batch.record_count for batch in batches] == [9]
    assert due == clock.now + 0.005
    assert accumulator.take(clock.now + 0.004) == ([], due)
    [rest], due = accumulator.take(clock.now + 0.005)
    assert (rest.record_count, due) == (3, None)


def test_whoever_takes_is_woken_once() -> None:
    clock = Clock()
    accumulator = make(clock, partitions=1)
    accumulator.append("t", b"")
    assert clock.woken == 1, "the first batch begins to linger"
    for _ in range(100):
        accumulator.append("t", bytes(90))
    assert clock.woken == 1, "nobody has come yet"
    accumulator.take(clock.now)
    accumulator.append("t", b"")
    assert clock.woken == 1, "a clock runs for the open batch already"
    for _ in range(10):
        accumulator.append("t", bytes(90))
    assert clock.woken == 2, "a batch is full"


def test_what_must_be_looked_into_is_declined() -> None:
    accumulator = make(buffer_memory=500, record_bytes_max=300)
    assert accumulator.append("unknown", b"") is None
    assert accumulator.append("t", b"", partition=4) is None
    assert accumulator.append("t", bytes(300)) is None
    assert accumulator.append("t", bytes(200)) is not None
    assert accumulator.append("t", bytes(200)) is not None
    assert accumulator.append("t", bytes(200)) is None, "no room"
    for batch in taken(accumulator):
        accumulator.release(batch.size)
    assert accumulator.used == 0
    assert accumulator.append("t", bytes(200)) is not None
    accumulator.is_closed = True
    assert accumulator.append("t", b"") is None


def test_keys_choose_their_partition_and_others_stay_for_a_batch() -> None:
    accumulator = make()
    for _ in range(3):
        accumulator.append("t", b"", b"foobar")
    assert [batch.partition for batch in taken(accumulator)] == [(-790332482 & 0x7FFFFFFF) % 4]
    for _ in range(2000):
        accumulator.append("t", bytes(90))
    batches = taken(accumulator)
    assert len(batches) < 230, "batches are full"
    used = Counter(batch.partition for batch in batches)
    assert len(used) == 4
    assert min(used.values()) > 20


def test_records_without_keys_go_where_there_is_a_leader() -> None:
    accumulator = make()
    accumulator.set_topic("t", 4, [1, 3])
    for _ in range(200):
        accumulator.append("t", bytes(90))
    assert {batch.partition for batch in taken(accumulator)} == {1, 3}


def test_taking_turns() -> None:
    accumulator = make(partitioner=ROUND_ROBIN)
    for _ in range(8):
        accumulator.append("t", b"", b"key")
    assert Counter(batch.record_count for batch in taken(accumulator)) == {2: 4}


def test_a_partitioner_of_ones_own() -> None:
    def choose(topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        assert (topic, key, count) == ("t", None, 4)
        return int(value or b"")

    accumulator = make(choose=choose)
    accumulator.append("t", b"2")
    assert [batch.partition for batch in taken(accumulator)] == [2]
    with pytest.raises(ValueError, match="chose 9 of 4 partitions"):
        accumulator.append("t", b"9")


def test_a_batch_that_is_whole_goes_behind_what_is_open() -> None:
    accumulator = make(partitions=1)
    accumulator.append("t", b"first")
    whole = bytes(build_batch([Record(0, 7, None, b"second")]))
    assert accumulator.add("t", 0, whole) is not None
    accumulator.append("t", b"third")
    values = [record.value for batch in taken(accumulator) for record in records(batch)]
    assert values == [b"first", b"second", b"third"]


def test_a_stamp_changes_the_header_only_and_leaves_what_was_sent() -> None:
    accumulator = make(partitions=1)
    accumulator.append("t", b"value")
    [batch] = taken(accumulator)
    batch.encode(Codec.NONE, None)
    first = batch.stamp(7, 0, 5)
    copy = bytes(bytearray(first))
    assert batch.stamp(7, 0, 5) is first
    second = batch.stamp(7, 1, 0)
    assert first == copy
    [header] = read_batches(second)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)


@pytest.mark.parametrize("size", [0, 1, 100, 255, 4096, 65_537, 3_000_001])
def test_a_stamp_corrects_the_checksum_whatever_is_behind_it(size: int) -> None:
    accumulator = make(partitions=1, buffer_memory=1 << 24)
    whole = build_batch([Record(0, 7, None, bytes(range(256)) * (size // 256) + bytes(size % 256))])
    accumulator.add("t", 0, bytes(whole))
    [batch] = taken(accumulator)
    for epoch in range(3):
        data = batch.stamp(2**62 + 12345, epoch, 2**31 - 1 - epoch, True)
        [header] = read_batches(data)  # which checks the checksum
        assert (header.producer_epoch, header.is_transactional) == (epoch, True)
        assert data[61:] == whole[61:]


def appended(accumulator: Accumulator, value: bytes) -> Delivery:
    delivery = accumulator.append("t", value, timestamp_ms=7)
    assert delivery is not None
    return delivery


def test_a_stamp_can_make_a_batch_a_transaction_s() -> None:
    accumulator = make()
    accumulator.append("t", b"value", partition=0)
    [batch] = taken(accumulator)
    batch.encode(Codec.NONE, None)
    assert not read_batches(batch.stamp(7, 0, 5))[0].is_transactional
    data = batch.stamp(7, 0, 6, True)
    validate(data)
    assert read_batches(data)[0].is_transactional


def test_what_is_paused_takes_nothing_and_hands_out_what_it_has() -> None:
    accumulator = make()
    assert accumulator.append("t", b"first", partition=0) is not None
    accumulator.is_paused = True
    assert accumulator.append("t", b"second", partition=0) is None
    assert accumulator.add("t", 0, build_batch([Record(0, 0, None, b"third")])) is None
    assert [record.value for batch in taken(accumulator) for record in records(batch)] == [b"first"]
    accumulator.is_paused = False
    assert accumulator.append("t", b"fourth", partition=0) is not None


def test_deliveries_tell_where_records_are() -> None:
    accumulator = make(partitions=1)
    deliveries = [appended(accumulator, b"") for _ in range(3)]
    [batch] = taken(accumulator)
    with pytest.raises(RuntimeError, match="not delivered yet"):
        deliveries[0].metadata()
    called: list[Delivery] = []
    deliveries[1].add_done_callback(called.append)
    batch.finish(40, -1, None)
    assert called == [deliveries[1]]
    assert [each.result() for each in deliveries] == [("t", 0, 40 + n, 7) for n in range(3)]


def test_deliveries_follow_the_halves_of_a_batch() -> None:
    accumulator = make(partitions=1)
    deliveries = [appended(accumulator, b"%d" % n) for n in range(4)]
    [batch] = taken(accumulator)
    whole = records(batch)
    called: list[Delivery] = []
    for delivery in deliveries:
        delivery.add_done_callback(called.append)
    first, second = batch.split(
        build_batch(whole[:1]),
        build_batch(Record(r.offset - 1, r.timestamp, r.key, r.value) for r in whole[1:]),
    )
    assert first.size + second.size == batch.size
    second.finish(20, -1, None)
    assert called == deliveries[1:]
    first.finish(-1, -1, OSError("lost"))
    assert called[-1] is deliveries[0]
    assert [each.metadata().offset for each in deliveries[1:]] == [20, 21, 22]
    with pytest.raises(OSError, match="lost"):
        deliveries[0].metadata()


def test_it_is_known_whether_anybody_looks() -> None:
    accumulator = make(partitions=1)
    kept = appended(accumulator, b"")
    appended(accumulator, b"")
    [batch] = taken(accumulator)
    assert batch.delivery_count == 1
    del kept
    assert batch.delivery_count == 0
