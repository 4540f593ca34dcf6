"""Avro: all types come back, schemas evolve, and hostile bytes are only rows that do not decode."""

import json
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from moldau.pipelines.decoding.decoder import Decoder, SchemaError
from moldau.pipelines.decoding.formats import make_decoder
from moldau.pipelines.decoding.spark_types import spark_type

HEADER = bytes([0, 0, 0, 1, 7])
FULL = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ok", "type": "boolean"},
        {"name": "n", "type": "int"},
        {"name": "big", "type": "long"},
        {"name": "ratio", "type": "float"},
        {"name": "amount", "type": ["double", "null"]},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sent", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        },
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "home",
            "type": ["null", {"type": "record", "name": "Place", "fields": [
                {"name": "city", "type": "string"},
                {"name": "since", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            ]}],
        },
        {"name": "places", "type": {"type": "array", "items": "Place"}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "long"]}},
    ],
}  # fmt: skip
UTC_TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
UTC_MILLIS = UTC_TIMES.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
PLACES = st.fixed_dictionaries({"city": st.text(), "since": UTC_MILLIS})
ORDERS = st.fixed_dictionaries(
    {
        "id": st.text(),
        "ok": st.booleans(),
        "n": st.integers(-(2**31), 2**31 - 1),
        "big": st.integers(-(2**63), 2**63 - 1),
        "ratio": st.floats(width=32, allow_nan=False),
        "amount": st.none() | st.floats(allow_nan=False),
        "raw": st.binary(),
        "hash": st.binary(min_size=4, max_size=4),
        "kind": st.sampled_from(["NEW", "OLD"]),
        "day": st.dates(date(1900, 1, 1), date(2200, 1, 1)),
        "at": UTC_MILLIS,
        "sent": st.none() | UTC_TIMES,
        "local": UTC_MILLIS.map(lambda at: at.replace(tzinfo=None)),
        "price": st.decimals(-(10**9), 10**9, places=2),
        "uuid": st.uuids().map(str),
        "home": st.none() | PLACES,
        "places": st.lists(PLACES, max_size=3),
        "tags": st.dictionaries(st.text(), st.none() | st.integers(0, 9), max_size=3),
    }
)


def avro(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def decoder(schema: Any, writer: Any = None, header: str = "auto") -> Decoder:
    written = None if writer is None else json.dumps(writer)
    return make_decoder("avro", json.dumps(schema), writer_schema=written, header=header)


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def one(made: Decoder, data: bytes) -> Any:
    values, reasons = made.decode(pa.array([data], pa.binary()))
    assert reasons == {}
    assert values.type == made.arrow_type
    return values[0].as_py(maps_as_pydicts="strict")


ORDER_DECODER = decoder(FULL)


def test_the_type_is_sparks() -> None:
    arrow_type = ORDER_DECODER.arrow_type
    assert to_arrow_type(spark_type(arrow_type), timezone="UTC") == arrow_type


@given(st.lists(st.none() | ORDERS, max_size=5), st.sampled_from([b"", HEADER]))
def test_every_type_comes_back(orders: list[dict[str, Any] | None], header: bytes) -> None:
    column = pa.array([order and header + avro(FULL, order) for order in orders], pa.binary())
    values, reasons = ORDER_DECODER.decode(column)
    assert reasons == {}
    assert values.type == ORDER_DECODER.arrow_type
    assert values.to_pylist(maps_as_pydicts="strict") == orders


@given(ORDERS, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_decode_or_not(order: dict[str, Any], changes: list[tuple[int, int]]) -> None:
    data = bytearray(avro(FULL, order))
    for place, byte in changes:
        data[place % len(data)] = byte
    values, reasons = ORDER_DECODER.decode(pa.array([bytes(data)], pa.binary()))
    values.validate(full=True)
    assert values[0].is_valid == (not reasons)


@given(st.lists(st.binary(max_size=200)), st.sampled_from(["auto", "confluent", "none"]))
def test_hostile_bytes_are_rows_that_do_not_decode(rows: list[bytes], header: str) -> None:
    values, reasons = decoder(FULL, header=header).decode(pa.array(rows, pa.binary()))
    assert {place for place, each in enumerate(values) if not each.is_valid} == reasons.keys()
    assert all(why and "\n" not in why for why in reasons.values())


@given(ORDERS, st.data())
def test_a_record_cut_off_does_not_decode(order: dict[str, Any], data: st.DataObject) -> None:
    whole = avro(FULL, order)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert decoder(FULL, header="none").decode(pa.array([cut], pa.binary())).reasons.keys() == {0}


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        ("int", "long", 5, 5),
        ("int", "float", 5, 5.0),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("long", "double", 2**40, 2.0**40),
        ("float", "double", 1.5, 1.5),
        ("string", "bytes", "é", "é".encode()),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "long"], 5, 5),
        (["null", "int"], ["null", "long"], None, None),
    ],
)
def test_types_widen(written: Any, read: Any, value: Any, expected: Any) -> None:
    old, new = record(field("a", written)), record(field("a", read))
    assert one(decoder(new, old), avro(old, {"a": value})) == {"a": expected}


def test_fields_are_added_with_defaults_and_removed() -> None:
    old = record(field("gone", {"type": "array", "items": "string"}), field("kept", "int"))
    price = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    inner = {"type": "record", "name": "I", "fields": [field("b", "bytes", default="\u00ff")]}
    new = record(
        field("kept", "int"),
        field("text", "string", default="none"),
        field("maybe", ["null", "string"], default=None),
        field("bytes", "bytes", default="\u00ff\u0001"),
        field("price", price, default="\u0001\u0000"),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}, default=1000),
        field("list", {"type": "array", "items": "bytes"}, default=["\u0080"]),
        field("inner", inner, default={}),
    )
    made = decoder(new, old)
    data = avro(old, {"gone": ["x", "y"], "kept": 7})
    assert one(pickle.loads(pickle.dumps(made)), data) == {
        "kept": 7,
        "text": "none",
        "maybe": None,
        "bytes": b"\xff\x01",
        "price": Decimal("2.56"),
        "at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=1),
        "list": [b"\x80"],
        "inner": {"b": b"\xff"},
    }


def test_a_new_symbol_and_a_missing_default_are_reasons() -> None:
    old = record(field("kind", {"type": "enum", "name": "K", "symbols": ["A", "B"]}))
    new = record(field("kind", {"type": "enum", "name": "K", "symbols": ["A"]}))
    rows = pa.array([avro(old, {"kind": kind}) for kind in "AB"], pa.binary())
    values, reasons = decoder(new, old).decode(rows)
    assert values.to_pylist() == [{"kind": "A"}, None]
    assert "B" in reasons[1]
    needy = record(field("added", "string"))
    assert "added" in decoder(needy, old).decode(rows).reasons[0]


def test_what_is_left_over_was_written_with_another_schema() -> None:
    data = avro("string", "ann") + b"x"
    assert "left over" in decoder("string").decode(pa.array([data], pa.binary())).reasons[0]


def test_a_value_that_does_not_fit_is_a_reason_of_its_own_row() -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    rows = [avro("long", each) for each in (1, 2**62, 3)]
    values, reasons = decoder(schema).decode(pa.array(rows, pa.binary()))
    assert [each.value for each in values] == [1000, None, 3000]
    assert "out of bounds" in reasons[1]


def test_the_header_is_there_or_not_as_told() -> None:
    plain, framed = avro("long", 0), HEADER + avro("long", 0)
    rows = pa.array([plain, framed, HEADER + b"\xff"], pa.binary())
    assert decoder("long").decode(rows).values.to_pylist() == [0, 0, None]
    assert decoder("long", header="none").decode(rows).values.to_pylist() == [0, None, None]
    values, reasons = decoder("long", header="confluent").decode(rows)
    assert values.to_pylist() == [None, 0, None]
    assert "does not begin with a zero" in reasons[0]
    assert "schema id 263" in reasons[2]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (record(field("a", record(field("b", ["int", "string"])) | {"name": "I"})),
         r"field a\.b: a union of int and string has no counterpart"),
        (record(field("a", {"type": "array", "items": ["null", FULL, record() | {"name": "S"}]})),
         r"field a\[\]: a union of shop.Order and S"),
        (record(field("next", ["null", "R"])), "field next: R, which contains itself"),
        (record(field("a", "null")), "field a: null alone"),
        (record(), "the schema: a record without fields"),
        (record(field("a", {"type": "bytes", "logicalType": "decimal", "precision": 50})),
         "field a: a decimal of 50 digits"),
        ({"type": "strin"}, "not an Avro schema: .*strin"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_named_at_once(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        decoder(schema)


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        ({"type": "array", "items": "null"}, "an array of null"),
        (["null", "R"], "R contains itself"),
    ],
)
def test_a_removed_field_must_not_run_without_end(removed: Any, words: str) -> None:
    old = record(field("gone", removed), field("kept", "int"))
    with pytest.raises(SchemaError, match=words):
        decoder(record(field("kept", "int")), old)


def test_a_schema_is_text_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(FULL))
    assert make_decoder("avro", str(path)).arrow_type == decoder(FULL).arrow_type
    with pytest.raises(SchemaError, match=r"cannot read nowhere\.avsc: No such file"):
        make_decoder("avro", "nowhere.avsc")
    with pytest.raises(SchemaError, match="a schema is missing"):
        make_decoder("avro")
