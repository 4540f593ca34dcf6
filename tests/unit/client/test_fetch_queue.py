"""What came is handed out in order, up to what stands in the way."""

from unittest.mock import Mock

import pytest

from moldau._native.records import Record, read_batches
from moldau.client.arrow_records import ArrowRecords
from moldau.client.chunk import Chunk
from moldau.client.connection import Connection
from moldau.client.errors import KafkaError
from moldau.client.fetch_queue import FetchedAnswer, FetchQueue, Trouble
from moldau.client.offset_reset import OffsetReset
from moldau.client.positions import PartitionState, Positions
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import build_batch
from moldau.records.compression import Codec

KEY = TopicPartition("t", 3)


class World:
    """A queue for one partition, that begins at offset 0."""

    def __init__(self, reset: str = "earliest") -> None:
        self.positions = Positions(OffsetReset.parse(reset))
        self.positions.assign([KEY])
        self.positions.seek(KEY, 0)
        self.queue = FetchQueue(self.positions)
        self.memory = Mock()

    @property
    def state(self) -> PartitionState:
        return self.positions.get(KEY)

    def answer(self, *parts: Chunk | Trouble) -> None:
        self.queue.add(FetchedAnswer(1, Mock(spec=Connection, memory=self.memory)), list(parts))

    def chunk(self, data: bytes, following: int | None = None) -> Chunk:
        batches = read_batches(data, check_crc=False)
        end = batches[-1].last_offset + 1 if following is None else following
        assert self.positions.fetched(self.state, self.state.fetch_offset, end, 0)
        return Chunk(KEY, self.state.generation, memoryview(data), batches, end, check_crcs=True)

    def trouble(self, code: ErrorCode, cut_to: int | None = None) -> Trouble:
        return Trouble(KEY, self.state.generation, self.state.fetch_offset, code, None, cut_to)


def _batch(first: int, count: int, codec: Codec = Codec.NONE) -> bytes:
    records = [Record(first + k, 10 * k, b"k", b"%d" % (first + k)) for k in range(count)]
    return bytes(build_batch(records, codec=codec, leader_epoch=5))


def _offsets(world: World, count: int) -> list[int]:
    return [record.offset for record in world.queue.take_records(count)]


def test_records_come_as_many_as_wanted_and_in_order() -> None:
    world = World()
    world.answer(world.chunk(_batch(0, 3) + _batch(3, 3, Codec.GZIP)))
    world.answer(world.chunk(_batch(6, 2)))
    assert world.queue.answers_from(1) == 2
    assert _offsets(world, 4) == [0, 1, 2, 3]
    assert world.state.position == 4
    assert _offsets(world, 10) == [4, 5, 6, 7]
    assert world.queue.answers_from(1) == 0
    assert world.memory.give.call_count == 2
    assert _offsets(world, 10) == []


def test_a_record_says_all_that_is_known_of_it() -> None:
    world = World()
    data = build_batch([Record(0, 1234, None, None, [("h", b"1"), ("n", None)])], leader_epoch=7)
    world.answer(world.chunk(bytes(data)))
    (record,) = world.queue.take_records(1)
    assert (record.topic, record.partition, record.offset) == ("t", 3, 0)
    assert (record.timestamp_ms, record.timestamp_type) == (1234, "CreateTime")
    assert (record.key, record.value) == (None, None)
    assert record.headers == (("h", b"1"), ("n", None))
    assert record.leader_epoch == 7
    assert "topic='t'" in repr(record)
    assert record != 1


def test_a_gap_at_the_end_moves_the_position_past_it() -> None:
    world = World()
    world.answer(world.chunk(_batch(0, 2), following=100))
    assert _offsets(world, 10) == [0, 1]
    assert world.state.position == 100


def test_records_before_the_position_are_not_handed_out() -> None:
    world = World()
    world.positions.seek(KEY, 2)
    world.answer(world.chunk(_batch(0, 5)))
    assert _offsets(world, 10) == [2, 3, 4]


def test_what_came_before_a_seek_is_dropped() -> None:
    world = World()
    world.answer(world.chunk(_batch(0, 5)))
    assert _offsets(world, 2) == [0, 1]
    world.positions.seek(KEY, 50)
    assert _offsets(world, 2) == []
    assert world.queue.answers_from(1) == 0


def test_trouble_comes_after_what_was_fetched_before() -> None:
    world = World(reset="none")
    world.answer(world.chunk(_batch(0, 2)))
    world.answer(world.trouble(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert _offsets(world, 10) == [0, 1]
    with pytest.raises(KafkaError, match="partition t-3 at offset 2: OFFSET_OUT_OF_RANGE"):
        world.queue.take_records(10)
    assert world.state.position == 2


def test_out_of_range_is_looked_up_by_the_policy() -> None:
    world = World()
    world.answer(world.trouble(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert _offsets(world, 10) == []
    assert world.state.position is None


def test_a_cut_log_is_read_again_from_where_it_was_cut() -> None:
    world = World()
    world.answer(world.chunk(_batch(0, 5)))
    world.answer(world.trouble(ErrorCode.OFFSET_OUT_OF_RANGE, cut_to=3))
    assert len(_offsets(world, 10)) == 5
    assert _offsets(world, 10) == []
    assert world.state.position == 3


@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_damaged_batch_is_told_where_it_is(as_arrow: bool) -> None:
    world = World()
    damaged = bytearray(_batch(2, 2))
    damaged[-1] ^= 1
    take = world.queue.take_columns if as_arrow else lambda: world.queue.take_records(10)
    world.answer(world.chunk(_batch(0, 2)))
    world.answer(world.chunk(bytes(damaged)))
    assert take()
    for _ in range(2):  # it is fetched again, and told again
        world.answer(world.chunk(bytes(damaged)))
        with pytest.raises(KafkaError, match=r"t-3 at offset 2: CORRUPT_MESSAGE: .* checksum"):
            take()
        assert world.state.position == 2


def test_columns_go_on_where_records_ended() -> None:
    import pyarrow as pa

    world = World()
    world.answer(world.chunk(_batch(0, 3) + _batch(3, 3)))
    world.answer(world.chunk(_batch(6, 1, Codec.ZSTD)))
    assert _offsets(world, 2) == [0, 1]
    arrow = ArrowRecords(world.queue.take_columns())
    assert len(arrow) == 5
    for _ in range(2):
        table = pa.table(arrow)
        assert table.column("offset").to_pylist() == [2, 3, 4, 5, 6]
        assert set(table.column("topic").to_pylist()) == {"t"}
        assert set(table.column("partition").to_pylist()) == {3}
        assert table.column("value").to_pylist() == [b"2", b"3", b"4", b"5", b"6"]
    assert world.state.position == 7


def test_no_records_have_columns_all_the_same() -> None:
    import pyarrow as pa

    table = pa.table(ArrowRecords([]))
    assert table.num_rows == 0
    assert table.column_names == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "headers",
    ]
    assert pa.schema(ArrowRecords([])) == table.schema
