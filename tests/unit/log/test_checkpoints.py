from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.checkpoints import (
    find_clean_broker_epoch,
    parse_offsets,
    render_clean_shutdown,
    render_offsets,
)
from moldau.log.errors import MalformedFileError

topics = st.text("abcXYZ019._-", min_size=1, max_size=249)
partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))
offsets = st.integers(0, 2**63 - 1).map(Offset)


@given(st.dictionaries(partitions, offsets))
def test_offsets_round_trip(checkpoint: dict[TopicPartition, Offset]) -> None:
    assert parse_offsets("x", render_offsets(checkpoint)) == checkpoint


def test_offsets_as_kafka_writes_them() -> None:
    checkpoint = {TopicPartition("b", 0): Offset(7), TopicPartition("a", 12): Offset(2**40)}
    assert render_offsets(checkpoint) == b"0\n2\na 12 1099511627776\nb 0 7\n"
    assert parse_offsets("x", b"0\n2\nb  0 7\r\na 12 1099511627776") == checkpoint


def test_an_empty_file_has_no_offsets() -> None:
    assert parse_offsets("x", b"") == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n", "x:1: '' is not a number"),
        (b"1\n0\n", "x:1: version 1 is not known"),
        (b"0\n", "x:2: the count of rows is missing"),
        (b"0\nmany\n", "x:2: 'many' is not a number"),
        (b"0\n2\na 0 1\n", "x:2: 2 rows announced, 1 found"),
        (b"0\n1\na 0\n", "x:3: 2 words instead of 3"),
        (b"0\n1\na 0 -1\n", "x:3: '-1' is not a number"),
        (b"0\n1\na 0 9223372036854775808\n", "x:3: '9223372036854775808' is not a number"),
        (b"0\n1\na 0 1_0\n", "x:3: '1_0' is not a number"),
        (b"0\n2\na 0 1\na 0 1\n", "x:4: a-0 is there twice"),
        (b"0\n1\n\xff 0 1\n", "x: byte 4 is not UTF-8"),
        (bytes(100), "x:1: "),
    ],
)
def test_malformed_offsets_are_named(data: bytes, message: str) -> None:
    with pytest.raises(MalformedFileError) as caught:
        parse_offsets("x", data)
    assert str(caught.value).startswith(message)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for prefix in (b"", b"0\n1\n"):
        with suppress(MalformedFileError):
            parse_offsets("x", prefix + data)


def test_clean_shutdown() -> None:
    assert render_clean_shutdown(42) == b'{"version":0,"brokerEpoch":42}'
    assert find_clean_broker_epoch(b'{"version":0,"brokerEpoch":42}') == 42


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"brokerEpoch":"1"}', b"[" * 100_000])
def test_an_unreadable_clean_shutdown_is_still_one(data: bytes) -> None:
    assert find_clean_broker_epoch(data) is None
