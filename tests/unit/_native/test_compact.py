import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.compact import KEY_BYTES, KeyMap, Sieve, siphash128
from moldau._native.records import BatchWriter, read_batches
from moldau.kernel.errors import CorruptBatchError, InvalidRecordError

SECRET = bytes(range(16))
MASK = (1 << 64) - 1
# From the reference implementation's table: the first n bytes of 00 01 02 ... under SECRET.
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    9: "264499060ad9baabc47f8b02bb6d71ed",
    63: "5150d1772f50834a503e069a973fbd7c",
}


def batch(base_offset: int, *keys: bytes | None, **fields: int) -> bytes:
    writer = BatchWriter(base_offset=base_offset)
    for key in keys:
        writer.append(1000, key, b"value")
    return writer.finish(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "expected"), VECTORS.items())
def test_siphash_has_the_published_values(size: int, expected: str) -> None:
    assert siphash128(SECRET, bytes(range(size))).hex() == expected


def rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)


def readable_siphash(secret: bytes, data: bytes) -> bytes:
    k0, k1 = struct.unpack("<QQ", secret)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261]
    v.append(k1 ^ 0x7465646279746573)
    v[1] ^= 0xEE
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(v, 4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(v, 4)
    return struct.pack("<QQ", low, v[0] ^ v[1] ^ v[2] ^ v[3])


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=300))
def test_siphash_is_what_its_paper_says(secret: bytes, data: bytes) -> None:
    assert siphash128(secret, data) == readable_siphash(secret, data)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=2)), min_size=1, max_size=200))
def test_the_map_has_the_last_offset_of_every_key(keys: list[bytes | None]) -> None:
    found = KeyMap(len(keys), SECRET)
    data = batch(5, *keys)
    assert found.feed(data, 0, 0) == (len(data), 0)
    expected = {key: 5 + n for n, key in enumerate(keys) if key is not None}
    assert found.key_count == len(expected)
    assert {key: found.find(key) for key in expected} == expected
    assert found.find(b"not there") == -1


def test_a_full_map_says_where() -> None:
    found = KeyMap(2, SECRET)
    data = batch(0, b"a", b"b", b"a", None, b"c", b"a")
    assert found.feed(data, 0, 0) == (0, 0)
    assert found.full_at == 4  # b"a" at 2 needed no room
    assert (found.find(b"a"), found.find(b"b"), found.find(b"c")) == (2, 1, -1)


def test_a_map_can_be_filled_to_the_brim() -> None:
    keys = [b"%d" % n for n in range(1000)]
    found = KeyMap(1000, SECRET, load_factor=0.95)
    found.feed(batch(0, *keys), 0, 0)
    assert found.full_at == -1
    assert [found.find(key) for key in keys] == list(range(1000))
    assert found.memory_bytes < 1000 / 0.95 * KEY_BYTES + 2 * KEY_BYTES
    found.feed(batch(1000, b"one more"), 0, 0)
    assert found.full_at == 1000


def test_records_before_the_first_offset_are_left_out() -> None:
    found = KeyMap(10, SECRET)
    found.feed(batch(0, b"a", b"b", b"c"), 0, 2)
    assert (found.find(b"a"), found.find(b"c")) == (-1, 2)


@pytest.mark.parametrize("attributes", [0x10, 0x20])
def test_a_run_stops_where_somebody_else_decides(attributes: int) -> None:
    plain, special = batch(0, b"a"), batch(1, b"b", attributes=attributes)
    data = plain + special + plain
    for run in (lambda p: KeyMap(10, SECRET).feed(data, p, 0), lambda p: sieve().run(data, p)):
        assert run(0) == (len(plain), len(special))
        assert run(len(plain) + len(special)) == (len(data), 0)


def test_a_run_stops_before_a_batch_that_is_cut_off() -> None:
    whole, cut = batch(0, b"a"), batch(1, b"b")[:-1]
    assert KeyMap(10, SECRET).feed(whole + cut, 0, 0) == (len(whole), 0)
    assert sieve().run(whole + cut, 0) == (len(whole), 0)


def sieve(keys: KeyMap | None = None) -> Sieve:
    return Sieve(
        keys or KeyMap(10, SECRET),
        base_offset=0,
        end_offset=100,
        now_ms=0,
        delete_retention_ms=0,
        needed=[],
        index_interval_bytes=4096,
    )


def test_damage_is_not_covered_up_by_a_new_checksum() -> None:
    data = bytearray(batch(0, b"a", b"b"))
    data[-3] ^= 1
    with pytest.raises(CorruptBatchError, match="checksum"):
        KeyMap(10, SECRET).feed(data, 0, 0)
    with pytest.raises(CorruptBatchError, match="checksum"):
        sieve().run(data, 0)


@given(st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_header_is_refused_or_waited_for(position: int, byte: int) -> None:
    data = bytearray(batch(0, b"a", b"b"))
    is_changed = data[position] != byte
    data[position] = byte
    for run in (lambda: KeyMap(10, SECRET).feed(data, 0, 0), lambda: sieve().run(data, 0)):
        try:
            used, _ = run()
        except (CorruptBatchError, InvalidRecordError):
            continue
        # The checksum does not cover base offset and leader epoch; a longer batch may follow.
        assert used == 0 or not is_changed or position < 8 or 12 <= position < 16


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        KeyMap(1, b"short")
    with pytest.raises(ValueError, match="room"):
        KeyMap(0, SECRET)
    with pytest.raises(ValueError, match="load factor"):
        KeyMap(1, SECRET, load_factor=1.0)
    data = batch(0, b"a")
    with pytest.raises(ValueError, match="not in this buffer"):
        sieve().copy(data[:-1], read_batches(data)[0])


def test_what_is_drained_cannot_be_kept() -> None:
    kept = []
    full = sieve()
    full.run(batch(0, b"a"), 0)
    full.drain(lambda _, view: kept.append(view))
    with pytest.raises(ValueError, match="released"):
        bytes(kept[0])
    assert full.pending_bytes == 0
