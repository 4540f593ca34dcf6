"""Compacted partitions: what a last read may find of a key."""

import pytest

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.keys import KeyedWrites
from moldau.simulation.laws.violation import LawViolation

P = TopicPartition("keys", 0)


def written(*writes: tuple[bytes | None, int]) -> KeyedWrites:
    keys = KeyedWrites()
    for value, offset in writes:
        keys.begin_write(P, b"k", value).offset = offset
    return keys


@pytest.mark.parametrize(
    ("writes", "found"),
    [
        ([(b"1", 3), (b"2", 5)], [(3, b"k", b"1"), (5, b"k", b"2")]),
        ([(b"1", 3), (b"2", -1)], [(3, b"k", b"1")]),
        ([(b"1", 3), (b"2", -1)], [(7, b"k", b"2")]),
        ([(b"1", 3), (None, 5)], []),
        ([(b"1", 3), (None, -1)], []),
        ([(b"1", -1)], []),
    ],
)
def test_the_last_value_is_there(
    writes: list[tuple[bytes | None, int]], found: list[tuple[int, bytes, bytes | None]]
):
    written(*writes).check_end(P, found)


@pytest.mark.parametrize(
    ("writes", "found", "law"),
    [
        ([(b"1", 3)], [], "lost key"),
        ([(b"1", 3), (b"2", 5)], [(3, b"k", b"1")], "stale key"),
        ([(b"1", 3), (None, 5)], [(3, b"k", b"1")], "stale key"),
        ([(b"1", 3)], [(3, b"k", b"2")], "stale key"),
    ],
)
def test_no_earlier_value_comes_back(
    writes: list[tuple[bytes | None, int]],
    found: list[tuple[int, bytes, bytes | None]],
    law: str,
):
    with pytest.raises(LawViolation, match=law):
        written(*writes).check_end(P, found)
