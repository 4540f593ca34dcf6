"""A source's columns: exactly Spark's types, and the client's memory where they are equal."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from moldau.pipelines.connector.columns import Shaper, check_schema, source_schema
from moldau.pipelines.connector.decoding_options import Decoding
from moldau.pipelines.connector.source_options import COLUMNS
from moldau.pipelines.errors import OptionError

NEEDED = {"kafka.bootstrap.servers": "h:1", "subscribe": "clicks"}
PAIR = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])

AS_IT_CAME = Decoding(None, None, "fail")


@pytest.fixture
def polled() -> Any:
    """What the client has: three records, one with headers."""
    return pa.record_batch(
        {
            "topic": pa.array(["clicks"] * 3),
            "partition": pa.array([1] * 3, pa.int32()),
            "offset": pa.array([7, 8, 10], pa.int64()),
            "timestamp": pa.array([0, 1, 1_700_000_000_123], pa.timestamp("ms", "UTC")),
            "timestamp_type": pa.array([0, 0, 1], pa.int8()),
            "key": pa.array([b"a", None, b""], pa.binary()),
            "value": pa.array([None, b"x", b"yy"], pa.binary()),
            "headers": pa.array(
                [[], [{"key": "h", "value": b"1"}, {"key": "i", "value": None}], []],
                pa.list_(PAIR),
            ),
        }
    )


@pytest.mark.parametrize("columns", [",".join(COLUMNS), "headers,value,timestamp"])
def test_a_batch_has_the_types_that_spark_makes_of_the_schema(polled: Any, columns: str) -> None:
    spark_schema = to_arrow_schema(source_schema(NEEDED | {"columns": columns}), timezone="UTC")
    shaped = Shaper(tuple(columns.split(",")), AS_IT_CAME).shape(polled)
    shaped.validate(full=True)
    assert shaped.schema.equals(spark_schema)


def test_rows_say_what_the_records_said(polled: Any) -> None:
    rows = Shaper(COLUMNS, AS_IT_CAME).shape(polled).to_pylist()
    assert [row["headers"] for row in rows] == [
        None,
        [{"key": "h", "value": b"1"}, {"key": "i", "value": None}],
        None,
    ]
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=dt.UTC)
    del rows[2]["headers"]
    assert rows[2] == {
        "key": b"", "value": b"yy", "topic": "clicks", "partition": 1, "offset": 10,
        "timestamp": moment, "timestampType": 1,
    }  # fmt: skip
    assert [row["key"] for row in rows[:2]] == [b"a", None]


def test_a_part_of_a_batch_is_shaped_too(polled: Any) -> None:
    rows = Shaper(("offset", "headers"), AS_IT_CAME).shape(polled.slice(1, 1)).to_pylist()
    assert [(row["offset"], row["headers"][0]["key"]) for row in rows] == [(8, "h")]


def test_values_are_not_copied(polled: Any) -> None:
    shaped = Shaper(("value",), AS_IT_CAME).shape(polled)
    there, here = polled.column("value").buffers(), shaped.column("value").buffers()
    assert [each.address for each in there if each] == [each.address for each in here if each]


def test_the_columns_are_those_of_sparks_connector() -> None:
    schema = source_schema(NEEDED | {"includeHeaders": "true"})
    assert schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert all(field.nullable for field in schema)


def test_a_schema_of_ones_own_is_refused() -> None:
    check_schema(source_schema(NEEDED), NEEDED)
    with pytest.raises(OptionError, match=r"not struct<id:string>: leave \.schema"):
        check_schema(StructType([StructField("id", StringType())]), NEEDED)
