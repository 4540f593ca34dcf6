"""A view's records, decoded as they were declared."""

import struct
from datetime import UTC, datetime

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.lookups.view_rows import RowReader
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.views.answers import KeyedRow

KEY = Column("id", "string", is_key=True)


def reader(form: str, *columns: Column) -> RowReader:
    return RowReader(Relation("t", RelationKind.TABLE, "t", columns, form))


def record(value: bytes) -> KeyedRow:
    return KeyedRow({"id": "a"}, value, 1, 7, 0)


def test_json_in_the_order_of_the_declaration() -> None:
    decoded = reader(
        "json", Column("at", "timestamp"), KEY, Column("n", "int"), Column("x", "date")
    )
    assert [each.name for each in decoded.columns] == ["at", "id", "n", "x"]
    assert decoded.read(record(b'{"n": 5, "at": "2026-01-01T08:00:00Z", "more": 1}')) == (
        datetime(2026, 1, 1, 8, tzinfo=UTC), "a", 5, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("form", "kind", "data", "value"),
    [
        ("string", "string", "ř".encode(), "ř"),
        ("raw", "binary", b"\xff", b"\xff"),
        ("int", "int", struct.pack(">i", -1), -1),
        ("long", "bigint", struct.pack(">q", 1 << 40), 1 << 40),
        ("float", "float", struct.pack(">f", 0.5), 0.5),
        ("double", "double", struct.pack(">d", 0.1), 0.1),
    ],
)
def test_plain_formats(form: str, kind: str, data: bytes, value: object) -> None:
    assert reader(form, KEY, Column("v", kind)).read(record(data)) == ("a", value)


def test_what_does_not_decode_is_named() -> None:
    for form, kind, data in (("json", "int", b"{"), ("int", "int", b"abc")):
        decoded = reader(form, KEY, Column("v", kind))
        with pytest.raises(PipelineError, match="topic t, partition 1, offset 7 does not decode"):
            decoded.read(record(data))


def test_what_only_spark_decodes_is_refused() -> None:
    with pytest.raises(PipelineError, match="t is avro, which only Spark decodes"):
        reader("avro", KEY, Column("v", "int"))


@pytest.mark.parametrize(
    ("form", "data", "bad"),
    [
        ("json", b'{"at": 1000}', b'{"at": 253402300800000}'),
        ("long", struct.pack(">q", 1000), struct.pack(">q", 253402300800000)),
    ],
)
def test_numbers_since_1970_are_times(form: str, data: bytes, bad: bytes) -> None:
    columns = (KEY, Column("at", "timestamp"))
    relation = Relation(
        "t", RelationKind.TABLE, "t", columns, form, event_time="at", event_time_unit="ms"
    )
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert RowReader(relation).read(record(data)) == ("a", second)
    with pytest.raises(PipelineError, match="offset 7 does not decode: field at is not between"):
        RowReader(relation).read(record(bad))
