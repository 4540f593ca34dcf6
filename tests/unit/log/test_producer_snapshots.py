from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.producers import ProducerState
from moldau._native.records import crc32c
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId
from moldau.log.errors import CorruptSnapshotError
from moldau.log.producer_snapshots import decode_snapshot, encode_snapshot

STATE = ProducerState(ProducerId(1), ProducerEpoch(2), 3, 4, Offset(5), 7, [(6, 7, 1, 4)])


def test_the_bytes_are_kafkas() -> None:
    entry = "0000000000000001 0002 00000006 0000000000000007 00000001 0000000000000004 00000003 "
    entries = bytes.fromhex("00000001" + entry + "0000000000000005")
    data = b"\0\1" + crc32c(entries).to_bytes(4, "big") + entries
    assert encode_snapshot([STATE]) == data
    assert decode_snapshot("x", data) == [STATE]


def test_a_producer_without_batches_or_transaction() -> None:
    state = ProducerState(ProducerId(9), ProducerEpoch(0), 4, 1234)
    assert decode_snapshot("x", encode_snapshot([state])) == [state]
    assert decode_snapshot("x", encode_snapshot([])) == []


def test_every_flipped_bit_is_found() -> None:
    data = encode_snapshot([STATE])
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptSnapshotError, match=r"^x: "):
            decode_snapshot("x", bytes(flipped))


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    checked = b"\0\1" + crc32c(data).to_bytes(4, "big") + data
    for attempt in (data, checked):
        with suppress(CorruptSnapshotError):
            decode_snapshot("x", attempt)
