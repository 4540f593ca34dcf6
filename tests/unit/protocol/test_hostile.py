"""Bytes that must be refused: one test for each way to be malformed.

Nothing but ProtocolError may come out, and no memory in proportion to what is merely claimed.
"""

import contextlib
import gc
import tracemalloc

import pytest

from moldau.kernel.errors import ProtocolError
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.schema import Message
from tests.unit.protocol.samples import Batches, Inner, Many, One, Sample, Tagged


def refuse(cls: type[Message], version: int, data: str, match: str) -> None:
    with pytest.raises(ProtocolError, match=match):
        cls.decode(bytes.fromhex(data), version)


def test_trailing_bytes() -> None:
    refuse(One, 0, "0001 61 00", "One v0: 1 bytes are left over at byte 3")


def test_empty_frame() -> None:
    refuse(One, 0, "", "2 bytes needed, 0 left")
    refuse(One, 1, "", "varint cut short")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_truncation(version: int) -> None:
    encoded = Sample(batches=b"records", maybe_inner=None).encode(version)
    for size in range(len(encoded)):
        with pytest.raises(ProtocolError, match=rf"Sample v{version}: \w+"):
            Sample.decode(encoded[:size], version)


def test_string_longer_than_the_bytes_left() -> None:
    refuse(One, 0, "0003 6161", r"One\.text at byte 2: 3 bytes needed, 2 left")
    refuse(One, 1, "04 6161", "3 bytes needed, 2 left")


def test_string_longer_than_kafka_allows() -> None:
    data = b"\x81\x80\x02" + b"a" * 0x8000 + b"\0"
    with pytest.raises(ProtocolError, match="length 32768 over the limit of 32767"):
        One.decode(data, 1)


def test_records_longer_than_the_bytes_left() -> None:
    refuse(Batches, 0, "7fffffff 00", "over the limit")
    refuse(Batches, 0, "7ffffffe 00", "2147483646 bytes needed, 1 left")
    refuse(Batches, 1, "ffffffff0f 00", "over the limit")


def test_negative_length() -> None:
    refuse(One, 0, "fffe", "length -2")
    refuse(One, 0, "8000", "length -32768")
    refuse(Batches, 0, "80000000", "length -2147483648")


def test_null_where_none_may_be() -> None:
    refuse(One, 0, "ffff", "null where none may be")
    refuse(One, 1, "00 00", "null where none may be")
    refuse(Many, 0, "ffffffff", "null where none may be")
    refuse(Many, 1, "00 00", "null where none may be")


def test_negative_count() -> None:
    refuse(Many, 0, "fffffffe", "length -2")


def test_count_larger_than_the_bytes_left_can_hold() -> None:
    # Eight bytes are two numbers of four bytes, not three, although eight is more than three.
    refuse(Many, 0, "00000003 0000000000000000", "3 elements cannot be in the 8 bytes left")
    refuse(Many, 1, "04 0000000000000000", "3 elements cannot be in the 8 bytes left")
    refuse(Many, 0, "7ffffffe", "cannot be in the 0 bytes left")


def test_count_in_a_real_request_costs_no_memory() -> None:
    data = (0x7FFFFFFE).to_bytes(4) + bytes(1000)
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        MetadataRequest.decode(data, 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_nested_counts_cost_no_memory() -> None:
    # A plausible outer count, and inner ones that only claim.
    data = (100).to_bytes(4) + b"\x00\x01a" * 100 + b"\xff" * 10_000
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        MetadataRequest.decode(data, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_varint_of_six_bytes() -> None:
    refuse(One, 1, "8080808080 01 00", "varint too long")


def test_varint_over_32_bits() -> None:
    refuse(One, 1, "8080808010 00", "varint too long")
    refuse(Tagged, 1, "ffffffff7f", "varint too long")


def test_varint_cut_short() -> None:
    refuse(One, 1, "80", "varint cut short")


def test_invalid_utf8() -> None:
    refuse(One, 0, "0001 ff", r"One\.text at byte 2: not UTF-8")
    refuse(One, 0, "0002 c080", "not UTF-8")  # an overlong zero


def test_utf8_surrogate() -> None:
    refuse(One, 0, "0003 eda080", "not UTF-8")


def test_more_than_64_tagged_fields() -> None:
    many = [b"%c\x00" % (10 + i) for i in range(65)]
    assert Tagged.decode(b"\x40" + b"".join(many[:64]), 1) == Tagged()
    with pytest.raises(ProtocolError, match="65 are more than 64"):
        Tagged.decode(b"\x41" + b"".join(many), 1)
    refuse(Tagged, 1, "ffffffff0f", "4294967295 are more than 64")


def test_tagged_field_larger_than_the_bytes_left() -> None:
    refuse(Tagged, 1, "01 09 05 00", "5 bytes needed, 1 left")
    refuse(Tagged, 1, "01 03 04 0000", "4 bytes needed, 2 left")


def test_tagged_field_larger_than_its_value() -> None:
    refuse(Tagged, 1, "01 03 05 0000000000", "1 bytes of the tagged field are left over")


def test_tagged_field_smaller_than_its_value() -> None:
    # The four bytes are there, but three of them are said to belong to the field.
    refuse(Tagged, 1, "01 03 03 00000000", "4 bytes needed, 3 left")


def test_fewer_tagged_fields_than_counted() -> None:
    refuse(Tagged, 1, "02 03 04 00000001", "varint cut short")


def test_negative_position() -> None:
    with pytest.raises(ProtocolError, match="no byte -1 in 3 bytes"):
        One.plan(0).decode_from(b"\0\1a", -1)


def test_position_behind_the_end() -> None:
    with pytest.raises(ProtocolError, match="no byte 4 in 3 bytes"):
        One.plan(0).decode_from(b"\0\1a", 4)


def test_header_with_a_negative_client_id() -> None:
    refuse(RequestHeader, 2, "0012 0003 00000001 fffe 00", "length -2")


@pytest.mark.long
def test_errors_leave_nothing_behind() -> None:
    inner = Inner(number=2**20, label="label")
    message = Sample(inners=[inner] * 3, names=["name"] * 3, tagged_maybe=inner, batches=b"batch")
    encoded = message.encode(2)
    plan = Sample.plan(2)

    def fail() -> None:
        for size in range(len(encoded)):
            with contextlib.suppress(ProtocolError):
                plan.decode(encoded[:size])
        gc.collect()

    def growth() -> int:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            fail()
        after, _ = tracemalloc.get_traced_memory()
        return after - before

    tracemalloc.start()
    fail()
    # What leaks does so every time; threads of other tests allocate, too, now and then.
    least = min(growth() for _ in range(4))
    tracemalloc.stop()
    assert least < len(encoded)
