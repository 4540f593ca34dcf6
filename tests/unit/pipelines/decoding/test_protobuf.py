"""Protobuf: all kinds of fields come back, schemas evolve, and hostile bytes do not decode."""

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import duration_pb2, text_format, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from moldau.pipelines.decoding.decoder import SchemaError
from moldau.pipelines.decoding.formats import make_decoder
from moldau.pipelines.decoding.protobuf import ProtobufDecoder
from moldau.pipelines.decoding.spark_types import spark_type

HEADER = bytes([0, 0, 0, 1, 7])
SHOP = """
name: "shop.proto" package: "shop" syntax: "proto3"
dependency: "google/protobuf/timestamp.proto"
dependency: "google/protobuf/duration.proto"
enum_type { name: "Kind" value { name: "NEW" number: 0 } value { name: "OLD" number: 1 } }
message_type {
  name: "Order"
  field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "n" number: 2 type: TYPE_SINT32 label: LABEL_OPTIONAL }
  field { name: "big" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "u32" number: 4 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "u64" number: 5 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
  field { name: "ratio" number: 6 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  field { name: "amount" number: 7 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "ok" number: 8 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "raw" number: 9 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "kind" number: 10 type: TYPE_ENUM type_name: ".shop.Kind" label: LABEL_OPTIONAL }
  field { name: "maybe" number: 11 type: TYPE_INT32 label: LABEL_OPTIONAL
          proto3_optional: true oneof_index: 1 }
  field { name: "card" number: 12 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "cash" number: 13 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "at" number: 14 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp"
          label: LABEL_OPTIONAL }
  field { name: "took" number: 15 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration"
          label: LABEL_OPTIONAL }
  field { name: "home" number: 16 type: TYPE_MESSAGE type_name: ".shop.Place"
          label: LABEL_OPTIONAL }
  field { name: "places" number: 17 type: TYPE_MESSAGE type_name: ".shop.Place"
          label: LABEL_REPEATED }
  field { name: "numbers" number: 18 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "by_name" number: 19 type: TYPE_MESSAGE type_name: ".shop.Order.ByNameEntry"
          label: LABEL_REPEATED }
  nested_type { name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".shop.Place"
            label: LABEL_OPTIONAL } }
  oneof_decl { name: "payment" } oneof_decl { name: "_maybe" }
}
message_type { name: "Place"
  field { name: "city" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Node"
  field { name: "next" number: 1 type: TYPE_MESSAGE type_name: ".shop.Node"
          label: LABEL_OPTIONAL } }
message_type { name: "Wrapper"
  field { name: "empty" number: 1 type: TYPE_MESSAGE type_name: ".shop.Empty"
          label: LABEL_OPTIONAL } }
message_type { name: "Empty" }
"""
OLD = """
name: "old.proto" package: "old" syntax: "proto2"
message_type {
  name: "Order"
  field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "n" number: 2 type: TYPE_SINT32 label: LABEL_OPTIONAL default_value: "7" }
  field { name: "added" number: 50 type: TYPE_STRING label: LABEL_OPTIONAL }
}
"""


def descriptor_set(*texts: str) -> bytes:
    files = FileDescriptorSet()
    for known in (timestamp_pb2, duration_pb2):
        known.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.extend(text_format.Parse(text, FileDescriptorProto()) for text in texts)
    return files.SerializeToString()


DESCRIPTORS = descriptor_set(SHOP, OLD)
DECODER = ProtobufDecoder(DESCRIPTORS, "shop.Order")


def message_class(name: str) -> Any:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(DESCRIPTORS).file:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


ORDER = message_class("shop.Order")
PLACES = st.fixed_dictionaries({"city": st.text()})
ORDERS = st.fixed_dictionaries(
    {
        "id": st.text(),
        "n": st.integers(-(2**31), 2**31 - 1),
        "big": st.integers(-(2**63), 2**63 - 1),
        "u32": st.integers(0, 2**32 - 1),
        "u64": st.integers(0, 2**64 - 1),
        "ratio": st.floats(width=32, allow_nan=False),
        "amount": st.floats(allow_nan=False),
        "ok": st.booleans(),
        "raw": st.binary(),
        "kind": st.sampled_from(["NEW", "OLD"]),
        "maybe": st.none() | st.integers(0, 5),
        "home": st.none() | PLACES,
        "places": st.lists(PLACES, max_size=3),
        "numbers": st.lists(st.integers(0, 9), max_size=3),
        "by_name": st.dictionaries(st.text(), PLACES, max_size=3),
    }
)


def test_the_type_is_sparks() -> None:
    arrow_type = DECODER.arrow_type
    assert to_arrow_type(spark_type(arrow_type), timezone="UTC") == arrow_type


@given(st.lists(st.none() | ORDERS, max_size=5), st.sampled_from([b"", HEADER + b"\0"]))
def test_every_kind_of_field_comes_back(orders: list[dict[str, Any] | None], header: bytes) -> None:
    rows = [order and header + ORDER(**order).SerializeToString() for order in orders]
    values, reasons = DECODER.decode(pa.array(rows, pa.binary()))
    assert reasons == {}
    assert values.type == DECODER.arrow_type
    values.validate(full=True)
    absent = dict.fromkeys(("card", "cash", "at", "took"))
    decoded = values.to_pylist(maps_as_pydicts="strict")
    assert decoded == [order and {**order, **absent} for order in orders]


def decode_one(data: bytes, decoder: ProtobufDecoder = DECODER) -> Any:
    values, reasons = decoder.decode(pa.array([data], pa.binary()))
    assert reasons == {}
    return values[0].as_py(maps_as_pydicts="strict")


def test_a_oneof_is_columns_of_which_one_is_there() -> None:
    order = decode_one(ORDER(cash=0).SerializeToString())
    assert (order["card"], order["cash"]) == (None, 0)


def test_times_keep_microseconds() -> None:
    order = ORDER()
    order.at.FromDatetime(datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC))
    order.at.nanos += 789
    order.took.FromMilliseconds(-1500)
    decoded = decode_one(order.SerializeToString())
    assert decoded["at"] == datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
    assert decoded["took"].total_seconds() == -1.5


def test_a_time_that_does_not_fit_is_a_reason_of_its_own_row() -> None:
    far, near = ORDER(), ORDER(id="near")
    far.at.seconds = 2**62
    rows = [far.SerializeToString(), None, near.SerializeToString()]
    values, reasons = DECODER.decode(pa.array(rows, pa.binary()))
    assert [each and each["id"] for each in values.to_pylist()] == [None, None, "near"]
    assert reasons.keys() == {0}


def test_what_is_not_in_the_schema_is_skipped_and_what_is_missing_is_null_or_its_default() -> None:
    old = ProtobufDecoder(DESCRIPTORS, "old.Order")
    data = ORDER(id="a", amount=1.5, by_name={"x": {"city": "y"}}).SerializeToString()
    assert decode_one(data, old) == {"id": "a", "n": 7, "added": None}
    assert decode_one(b"", old) == {"id": None, "n": 7, "added": None}
    empty = decode_one(b"")
    assert (empty["id"], empty["u64"], empty["home"], empty["places"]) == ("", Decimal(0), None, [])


def test_a_number_without_a_name_stays_a_number() -> None:
    assert decode_one(ORDER(kind=5).SerializeToString())["kind"] == "5"


@given(ORDERS, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_decode_or_not(order: dict[str, Any], changes: list[tuple[int, int]]) -> None:
    data = bytearray(ORDER(**order | {"maybe": 1}).SerializeToString())
    for place, byte in changes:
        data[place % len(data)] = byte
    values, reasons = DECODER.decode(pa.array([bytes(data)], pa.binary()))
    values.validate(full=True)
    assert values[0].is_valid == (not reasons)


@given(st.lists(st.binary(max_size=200)), st.sampled_from(["auto", "confluent", "none"]))
def test_hostile_bytes_are_rows_that_do_not_decode(rows: list[bytes], header: str) -> None:
    for name in ("shop.Order", "old.Order"):
        decoder = ProtobufDecoder(DESCRIPTORS, name, header)
        values, reasons = decoder.decode(pa.array(rows, pa.binary()))
        assert {place for place, each in enumerate(values) if not each.is_valid} == reasons.keys()


@pytest.mark.parametrize("indexes", [b"\x00", b"\x02\x00", b"\x04\x02\x80\x01"])
def test_message_indexes_are_skipped(indexes: bytes) -> None:
    data = HEADER + indexes + ORDER(id="a").SerializeToString()
    assert decode_one(data)["id"] == "a"
    assert decode_one(data, ProtobufDecoder(DESCRIPTORS, "shop.Order", "confluent"))["id"] == "a"


def test_a_header_that_is_missing_or_cut_off_is_a_reason() -> None:
    rows = pa.array([ORDER(id="a").SerializeToString(), HEADER, HEADER + b"\xff"], pa.binary())
    reasons = ProtobufDecoder(DESCRIPTORS, "shop.Order", "confluent").decode(rows).reasons
    assert "does not begin with a zero" in reasons[0]
    assert "schema id 263: the message indexes of its header are cut off" in reasons[1]
    assert reasons.keys() == {0, 1, 2}
    assert ProtobufDecoder(DESCRIPTORS, "shop.Order", "none").decode(rows).reasons.keys() == {1, 2}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("shop.Node", r"field next: shop\.Node, which contains itself, has no counterpart"),
        ("shop.Wrapper", r"field empty: shop\.Empty, a message without fields,"),
        ("shop.Nothing", r"no message shop\.Nothing: the descriptor set has .*shop\.Order"),
    ],
)
def test_what_has_no_counterpart_is_named_at_once(message: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        ProtobufDecoder(DESCRIPTORS, message)


def test_a_descriptor_set_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.desc"
    path.write_bytes(DESCRIPTORS)
    made = pickle.loads(pickle.dumps(make_decoder("protobuf", str(path), message="shop.Order")))
    path.unlink()
    assert made.arrow_type == DECODER.arrow_type
    assert decode_one(ORDER(n=-3).SerializeToString(), made)["n"] == -3
    path.write_bytes(b"not one")
    with pytest.raises(SchemaError, match=r"not a descriptor set: .* protoc --include_imports"):
        make_decoder("protobuf", str(path), message="shop.Order")
    with pytest.raises(SchemaError, match="the name of a message"):
        make_decoder("protobuf", str(path))


def test_a_set_without_its_imports_says_how_to_make_one() -> None:
    lonely = FileDescriptorSet(file=[text_format.Parse(SHOP, FileDescriptorProto())])
    with pytest.raises(SchemaError, match="--include_imports"):
        ProtobufDecoder(lonely.SerializeToString(), "shop.Order")
