"""Text and numbers: as Java's serializers write them, and nothing else."""

import pickle
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.decoding.decoder import SchemaError
from moldau.pipelines.decoding.formats import FORMATS, make_decoder

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
DOUBLES = st.floats(allow_nan=False)


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


@pytest.mark.parametrize(
    ("name", "code", "numbers"),
    [
        ("int", ">i", INTS),
        ("long", ">q", LONGS),
        ("float", ">f", FLOATS),
        ("double", ">d", DOUBLES),
    ],
)
@given(data=st.data())
def test_numbers_come_back(
    name: str, code: str, numbers: st.SearchStrategy[float], data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.none() | numbers))
    column = binary(*(None if each is None else struct.pack(code, each) for each in values))
    decoder = make_decoder(name)
    decoded = decoder.decode(column)
    assert decoded.values.to_pylist() == values
    assert decoded.values.type == decoder.arrow_type
    assert decoded.reasons == {}


def test_a_number_of_another_width_does_not_decode() -> None:
    values, reasons = make_decoder("int").decode(binary(b"", b"\0\0\0\1", None, bytes(8)))
    assert values.to_pylist() == [None, 1, None, None]
    assert reasons == {0: "0 bytes, int has 4", 3: "8 bytes, int has 4"}


def test_a_slice_of_a_column_is_decoded_alone() -> None:
    column = binary(b"bad", bytes([0, 0, 0, 1]), bytes([0, 0, 0, 2]))
    assert make_decoder("int").decode(column[1:]).values.to_pylist() == [1, 2]
    assert make_decoder("string").decode(column[:1]).values.to_pylist() == ["bad"]


@given(st.lists(st.none() | st.text() | st.binary()))
def test_text_is_utf8(values: list[str | bytes | None]) -> None:
    column = binary(*(each.encode() if isinstance(each, str) else each for each in values))
    decoded, reasons = make_decoder("string").decode(column)
    for place, data in enumerate(column.to_pylist()):
        try:
            text = None if data is None else data.decode()
        except UnicodeDecodeError:
            assert decoded[place].as_py() is None
            assert "utf-8" in reasons[place]
        else:
            assert decoded[place].as_py() == text
            assert place not in reasons


def test_raw_bytes_are_as_they_came() -> None:
    column = binary(b"", None, b"\xff")
    assert make_decoder("raw").decode(column) == (column, {})


def test_a_decoder_travels_to_tasks() -> None:
    for name in set(FORMATS) - {"avro", "protobuf"}:
        decoder = pickle.loads(pickle.dumps(make_decoder(name)))
        assert decoder.arrow_type == make_decoder(name).arrow_type


def test_a_format_that_is_not_there_is_named() -> None:
    with pytest.raises(SchemaError, match="no format xml: raw, string, int"):
        make_decoder("xml")
