"""Building batches record by record."""

import zlib

import pytest

from moldau._native.records import BatchWriter, decode_records, read_batches
from moldau.kernel.errors import ProtocolError
from tests.unit.native.samples import HEADER_SIZE, header_of


def test_sizes_are_those_of_the_bytes() -> None:
    writer = BatchWriter()
    assert writer.size == HEADER_SIZE
    size = writer.append(1, b"key", b"value", [("a", b"b"), ("c", None)])
    assert writer.size == HEADER_SIZE + size == len(writer.finish())
    size += writer.append(2, None, b"x" * 100_000)
    assert writer.size == HEADER_SIZE + size == len(writer.finish())
    assert writer.record_count == 2


def test_any_buffer_is_taken() -> None:
    writer = BatchWriter()
    writer.append(1, bytearray(b"k"), memoryview(b"xvx")[1:2], [("h", bytearray(b"z"))])
    data = writer.finish()
    (record,) = decode_records(data[HEADER_SIZE:], header_of(data))
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("h", b"z"),))


def test_what_is_no_buffer_is_refused_and_leaves_the_batch_as_it_was() -> None:
    writer = BatchWriter()
    writer.append(1, None, b"v")
    before = writer.finish()
    for key, value, headers in [
        ("text", b"", ()),
        (b"", 5, ()),
        (b"", b"", [(b"key", b"")]),
        (b"", b"", [("key", "text")]),
        (b"", b"", [("key",)]),
        (b"", memoryview(b"abc")[::2], ()),
    ]:
        with pytest.raises((TypeError, ValueError, BufferError)):
            writer.append(1, key, value, headers)  # type: ignore[arg-type]
    assert writer.finish() == before


def test_a_lone_surrogate_in_a_header_key_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        BatchWriter().append(1, None, None, [("\ud800", None)])


def test_offsets_only_increase() -> None:
    writer = BatchWriter(base_offset=10)
    with pytest.raises(ProtocolError, match="does not follow"):
        writer.append_at(9, 0, None, None)
    writer.append_at(12, 0, None, None)
    with pytest.raises(ProtocolError, match="does not follow"):
        writer.append_at(12, 0, None, None)
    writer.append(0, None, None)
    with pytest.raises(ProtocolError, match="does not follow"):
        writer.append_at(10 + 2**31, 0, None, None)
    batch = header_of(writer.finish())
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 13, 2)


def test_a_writer_is_used_again_after_reset() -> None:
    writer = BatchWriter()
    writer.append(7, b"k" * 10_000, None)
    writer.finish()
    writer.reset(base_offset=5)
    assert (writer.size, writer.record_count) == (HEADER_SIZE, 0)
    writer.append(3, None, b"v")
    other = BatchWriter(base_offset=5)
    other.append(3, None, b"v")
    assert writer.finish() == other.finish()


def test_compression_sees_the_records_and_nothing_else() -> None:
    writer = BatchWriter()
    writer.append(1, None, b"v" * 1000)
    plain = writer.finish()
    data = writer.finish(codec=1, compress=zlib.compress)
    batch = header_of(data)
    assert batch.codec == 1
    assert zlib.decompress(data[HEADER_SIZE:]) == plain[HEADER_SIZE:]
    assert len(data) < 200


def test_a_kept_view_of_the_records_stays_safe() -> None:
    kept: list[memoryview] = []

    def compress(payload: memoryview) -> bytes:
        kept.append(payload)
        return bytes(payload)

    writer = BatchWriter()
    writer.append(1, None, b"v" * 10)
    writer.finish(codec=1, compress=compress)
    with pytest.raises(BufferError):
        writer.append(1, None, b"v" * 100_000)
    content = bytes(kept[0])
    del writer
    assert kept[0] == content


def test_the_codec_goes_with_what_compresses() -> None:
    writer = BatchWriter()
    writer.append(1, None, None)
    with pytest.raises(ValueError, match="go together"):
        writer.finish(codec=1)
    with pytest.raises(ValueError, match="go together"):
        writer.finish(compress=bytes)
    with pytest.raises(ValueError, match="argument of its own"):
        writer.finish(attributes=1)
    with pytest.raises(ValueError, match="argument of its own"):
        writer.finish(codec=8, compress=bytes)


def test_compaction_keeps_the_range_and_the_delete_horizon() -> None:
    writer = BatchWriter(base_offset=100, base_timestamp=5000)
    writer.append_at(103, 4000, b"k", None)
    data = writer.finish(last_offset=109, attributes=0x40, max_timestamp=4500)
    batch = header_of(data)
    assert (batch.base_offset, batch.last_offset) == (100, 109)
    assert (batch.base_timestamp, batch.max_timestamp) == (5000, 4500)
    assert batch.has_delete_horizon
    (record,) = decode_records(data[HEADER_SIZE:], batch)
    assert (record.offset, record.timestamp) == (103, 4000)


def test_an_empty_batch_needs_a_last_offset() -> None:
    writer = BatchWriter(base_offset=100)
    with pytest.raises(ProtocolError, match="last offset"):
        writer.finish()
    with pytest.raises(ProtocolError, match="last offset"):
        writer.finish(last_offset=99)
    data = writer.finish(last_offset=104, producer_id=3)
    (batch,) = read_batches(data)
    assert (batch.record_count, batch.last_offset, batch.size) == (0, 104, HEADER_SIZE)
    assert decode_records(b"", batch) == []


def test_the_last_offset_does_not_lie_before_the_last_record() -> None:
    writer = BatchWriter()
    writer.append_at(3, 0, None, None)
    with pytest.raises(ProtocolError, match="last offset"):
        writer.finish(last_offset=2)
    with pytest.raises(ProtocolError, match="last offset"):
        writer.finish(last_offset=2**31)
