"""JSON by a schema of Spark's, without Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.streams.json_rows import read_json

SCHEMA = (
    StructType()
    .add("id", StringType())
    .add("n", IntegerType())
    .add("amount", DoubleType())
    .add("price", DecimalType(9, 2))
    .add("at", TimestampType())
    .add("day", DateType())
    .add("data", BinaryType())
    .add("lines", ArrayType(StructType().add("n", IntegerType())))
    .add("tags", MapType(StringType(), DoubleType()))
)


def test_fields_have_the_types_of_the_schema() -> None:
    text = (
        '{"id": {"a": 1}, "n": 1, "amount": 2, "price": 1.25, "at": "2024-05-01T08:00:00Z",'
        ' "day": "2024-05-01", "data": "AAE=", "lines": [{"n": 3, "x": 4}, null],'
        ' "tags": {"k": 0.5}, "other": 1}'
    )
    assert read_json(text.encode(), SCHEMA) == {
        "id": '{"a":1}',
        "n": 1,
        "amount": 2.0,
        "price": Decimal("1.25"),
        "at": datetime(2024, 5, 1, 8, tzinfo=UTC),
        "day": date(2024, 5, 1),
        "data": b"\x00\x01",
        "lines": [{"n": 3}, None],
        "tags": {"k": 0.5},
    }
    assert read_json(b"{}", SCHEMA) == dict.fromkeys(SCHEMA.names)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"5",
        b"null",
        b"\xff",
        b'{"at": "soon"}',
        b'{"at": 1767225600000}',
        b'{"at": 1.5}',
        b'{"n": "x"}',
        b'{"n": 1.5}',
        b'{"n": true}',
        b'{"price": "much"}',
        b'{"lines": [5]}',
        b'{"tags": []}',
    ],
)
def test_what_is_not_of_the_schema_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="it is"):
        read_json(data, SCHEMA)


def test_times_may_be_numbers() -> None:
    assert read_json(b'{"at": 5}', SCHEMA)["at"] == datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
    time = datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert read_json(b'{"at": 5}', SCHEMA, Epoch("at", "ms"))["at"] == time
    assert read_json(b"{}", SCHEMA, Epoch("at", "ms"))["at"] is None
    for data in (b'{"at": "2026-01-01T00:00:00Z"}', b'{"at": 253402300800000}'):
        with pytest.raises(ValueError, match="it is not JSON of the schema"):
            read_json(data, SCHEMA, Epoch("at", "ms"))
