"""CRC-32C in hardware and by tables."""

import random

import pytest

from moldau._native.records import CRC32C_IMPLEMENTATION, crc32c, crc32c_tables
from tests.reference import records as reference

# Around the sizes where the three-way loop changes its step: 3 * 256 and 3 * 4096.
SIZES = [*range(40), 255, 256, 767, 768, 769, 776, 1536, 12287, 12288, 12289, 13057, 40000]


def test_the_check_value() -> None:
    assert crc32c(b"123456789") == crc32c_tables(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize("size", SIZES)
def test_hardware_and_tables_agree_with_the_definition(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == crc32c_tables(data) == reference.crc32c(data)


def test_any_split_continues_to_the_same_sum() -> None:
    data = random.Random(1).randbytes(30_000)
    whole = crc32c(data)
    for at in (0, 1, 7, 8, 769, 12_289, 29_999, 30_000):
        assert crc32c(data[at:], crc32c(data[:at])) == whole
        assert crc32c_tables(data[at:], crc32c_tables(data[:at])) == whole


def test_any_alignment_and_any_kind_of_buffer() -> None:
    data = random.Random(2).randbytes(20_000)
    for start in range(9):
        view = memoryview(bytearray(data))[start:]
        assert crc32c(view) == crc32c_tables(data[start:])


def test_the_implementation_has_a_name() -> None:
    assert CRC32C_IMPLEMENTATION in {"sse4.2", "armv8", "tables"}
