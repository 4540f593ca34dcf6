"""Numbers since 1970 as times, one by one and whole columns at once."""

import struct
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.decoding.decoder import Decoded, SchemaError
from moldau.pipelines.decoding.epoch_decoder import EpochDecoder, check_epoch
from moldau.pipelines.decoding.epochs import PER_SECOND, UNITS, bounds, from_time, to_time
from moldau.pipelines.decoding.plain import NUMBERS

LONG = NUMBERS["long"]
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


class Orders:
    """A decoder whose values have fields."""

    arrow_type = pa.struct([("id", pa.string()), ("at", pa.int64())])

    def decode(self, column: pa.Array) -> Decoded:
        values = [
            None if data is None else {"id": str(place), "at": struct.unpack(">q", data)[0]}
            for place, data in enumerate(column.to_pylist())
        ]
        return Decoded(pa.array(values, self.arrow_type), {})


def packed(*numbers: int | None) -> pa.Array:
    data = [None if each is None else struct.pack(">q", each) for each in numbers]
    return pa.array(data, pa.binary())


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_the_first_and_the_last_time(unit: str) -> None:
    first, last = bounds(unit)
    assert to_time(first, unit) == FIRST
    assert to_time(last, unit) == LAST.replace(
        microsecond=from_time(LAST, unit) * 1000000 // PER_SECOND[unit] % 1000000
    )
    assert to_time(first - 1, unit) is None
    assert to_time(last + 1, unit) is None


@given(st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)), st.sampled_from(UNITS))
def test_there_and_back(time: datetime, unit: str) -> None:
    zoned = time.replace(tzinfo=UTC)
    number = from_time(zoned, unit)
    first, last = bounds(unit)
    if not first <= number <= last:
        assert unit == "ns"  # 64 bits of nanoseconds are from 1677 to 2262
        return
    found = to_time(number, unit)
    assert found is not None
    assert (
        timedelta(0)
        <= zoned - found
        < timedelta(seconds=1) / PER_SECOND[unit] + timedelta(microseconds=1)
    )


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.sampled_from(UNITS))
def test_columns_are_as_single_numbers_are(numbers: list[int | None], unit: str) -> None:
    wanted = [None if each is None else to_time(each, unit) for each in numbers]
    times, reasons = EpochDecoder(LONG, unit).decode(packed(*numbers))
    assert times.to_pylist() == wanted
    bad = [at for at, each in enumerate(numbers) if each is not None and wanted[at] is None]
    assert sorted(reasons) == bad
    assert all(f"in {unit}; event_time_unit says" in why for why in reasons.values())
    decoder = EpochDecoder(Orders(), unit, "at")
    values, reasons = decoder.decode(packed(*numbers))
    assert values.type == decoder.arrow_type == pa.struct([("id", pa.string()), ("at", times.type)])
    assert [each and each["at"] for each in values.to_pylist()] == wanted
    assert sorted(reasons) == bad
    assert [each is None for each in values.to_pylist()] == [each is None for each in numbers]


def test_reasons_of_the_decoder_stay() -> None:
    times, reasons = EpochDecoder(LONG, "ms").decode(pa.array([b"x", struct.pack(">q", 2**62)]))
    assert times.to_pylist() == [None, None]
    assert reasons[0] == "1 bytes, long has 8"
    assert reasons[1].startswith("field value is not between the years 1 and 9999 in ms")


def test_what_is_no_number_is_refused() -> None:
    check_epoch(LONG, None)
    check_epoch(Orders(), "at")
    with pytest.raises(SchemaError, match="the value is int32, and a number of 64 bits"):
        check_epoch(NUMBERS["int"], None)
    with pytest.raises(SchemaError, match="id is string, and a number"):
        check_epoch(Orders(), "id")
    for decoder in (LONG, Orders()):
        with pytest.raises(SchemaError, match="there is no field when"):
            check_epoch(decoder, "when")
