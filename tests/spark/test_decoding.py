"""What Spark does itself: JSON, keys as bytes; and its types for what decoders give."""

import json
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from fastavro import schemaless_writer
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, StructType

from moldau.pipelines.connector.columns import decoded_schema
from moldau.pipelines.connector.decoding_options import read_decoding
from moldau.pipelines.connector.options import Options
from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.decoding.json_columns import decode_json
from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "id string, n int, amount double, at timestamp, inner struct<x: int>, list array<int>, "
    "map map<string, int>, price decimal(10, 2)"
)
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
LINE = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}
GOOD = [
    b'{"id": "a", "n": 1, "amount": 2, "inner": {"x": 3}, "list": [4], "map": {"k": 5}}',
    b"{}",
    b'{"n": null, "extra": {"y": 1}}',
    b'{"id": "\xc3\xa9", "price": 1.25}',
]
BAD = [
    b"",
    b"null",
    b"5",
    b"[]",
    b'[{"n": 1}]',
    b'{"n": 1',
    b"\xff\xfe",
    b'{"id": "\xff"}',
    b'{"n": "x"}',
    b'{"n": 1.5}',
    b'{"n": 3000000000}',
    b'{"amount": "much"}',
    b'{"at": "yesterday"}',
    b'{"inner": {"x": "bad"}, "n": 1}',
    b'{"inner": 5}',
    b'{"list": [1, "x"]}',
    b'{"map": {"k": "x"}}',
    b'{"price": 123456789.5}',
]


def records(spark: "SparkSession", *values: bytes | None) -> "DataFrame":
    rows = [("orders", 3, offset, value) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, "topic string, partition int, offset long, value binary")


def test_json_becomes_a_struct_and_a_tombstone_stays_null(spark: "SparkSession") -> None:
    rows = decode_json(records(spark, *GOOD, None), {"value": SCHEMA}, "fail")
    assert rows.columns == ["topic", "partition", "offset", "value"]
    full, empty, extra, text, tombstone = [row.value for row in rows.collect()]
    assert full.asDict(recursive=True) == {
        "id": "a",
        "n": 1,
        "amount": 2.0,
        "at": None,
        "inner": {"x": 3},
        "list": [4],
        "map": {"k": 5},
        "price": None,
    }
    assert set(empty.asDict().values()) == set(extra.asDict().values()) == {None}
    assert (text.id, str(text.price)) == ("é", "1.25")
    assert tombstone is None


def test_times_are_iso_8601_unless_told(spark: "SparkSession") -> None:
    instant = datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC).timestamp()
    offset = records(spark, b'{"at": "2024-05-01T10:00:00.123456+02:00"}')
    own = records(spark, b'{"at": "01/05/2024 08:00:00.123456 Z"}')
    pattern = {"timestampFormat": "dd/MM/yyyy HH:mm:ss.SSSSSS X"}
    for rows in (
        decode_json(offset, {"value": SCHEMA}, "fail"),
        decode_json(own, {"value": SCHEMA}, "fail", pattern),
    ):
        (row,) = rows.select(F.col("value.at").cast("double").alias("at")).collect()
        assert row.at == pytest.approx(instant, abs=1e-6)


def test_one_bad_field_makes_a_bad_row(spark: "SparkSession") -> None:
    mixed = records(spark, *BAD, *GOOD, None)
    bad = decode_json(mixed, {"value": SCHEMA}, "only").collect()
    assert [bytes(row.value) for row in bad] == BAD
    wrong = "value: it is not JSON of the schema"
    assert [row.reason for row in bad] == [
        "value: it is empty",
        *[wrong] * 5,
        *["value: it is not UTF-8"] * 2,
        *[f"{wrong}: field n is no int"] * 3,
        f"{wrong}: field amount is no double",
        f"{wrong}: field at is no timestamp",
        f"{wrong}: field inner.x is no int",
        f"{wrong}: field inner is no struct",
        f"{wrong}: field list is no array",
        f"{wrong}: field map is no map",
        f"{wrong}: field price is no decimal(10,2)",
    ]
    left = decode_json(mixed, {"value": SCHEMA}, "skip")
    assert [row.offset for row in left.collect()] == list(range(len(BAD), len(BAD + GOOD) + 1))
    # A column that is not asked for does not change which rows are good.
    assert left.select("value.id").count() == len(GOOD) + 1


TIMES = (
    "at timestamp, day date, local timestamp_ntz, inner struct<at: timestamp>, "
    "list array<timestamp>, map map<string, date>"
)


def test_times_are_of_the_years_1_to_9999(spark: "SparkSession") -> None:
    # What Spark itself takes for a time: years beyond Python's, and numbers that overflow.
    bad = {
        '{"at": 1767225600000}': "at",
        '{"at": 253402300800}': "at",
        '{"at": -62135596801}': "at",
        '{"at": "+10000-01-01T00:00:00Z"}': "at",
        '{"at": "-0001-01-01T00:00:00Z"}': "at",
        # Microseconds of 2026, as seconds: 64 bits overflow, to a time of the year 2001.
        '{"at": 1770888431076116}': "at",
        '{"day": "+10000-01-01"}': "day",
        '{"local": "+10000-01-01T00:00:00"}': "local",
        '{"inner": {"at": 1767225600000}}': "inner.at",
        '{"list": [0, 1767225600000]}': "list",
        '{"map": {"k": "+10000-01-01"}}': "map",
    }
    good = [
        '{"at": 253402300799, "day": "9999-12-31", "list": [null], "map": {"k": null}}',
        '{"at": "0001-01-01T00:00:00Z", "local": "0001-01-01T00:00:00", "inner": {}}',
        '{"at": "2026-01-01T00:00:00.000064Z", "inner": null, "list": [1767225600]}',
        "{}",
    ]
    mixed = records(spark, *(each.encode() for each in (*bad, *good)))
    marked = decode_json(mixed, {"value": TIMES}, "mark").collect()
    found = {bytes(row.value).decode(): row.reason for row in marked}
    for text, field in bad.items():
        words = f"value: field {field} is not between the years 1 and 9999; a number is read as"
        assert (found[text] or "").startswith(words), text
    assert {found[text] for text in good} == {None}


@pytest.mark.parametrize(
    ("unit", "numbers"),
    [
        ("s", {1767225600: 1767225600_000000, 1767225600000: None, -1: -1000000}),
        ("ms", {1767225600001: 1767225600_001000, 253402300800000: None}),
        ("us", {1767225600000001: 1767225600_000001, -(2**63): None}),
        ("ns", {1767225600000001999: 1767225600_000001, -1: -1}),
    ],
)
def test_a_number_since_1970_is_a_timestamp(
    spark: "SparkSession", unit: str, numbers: dict[int, int | None]
) -> None:
    rows = records(spark, *(b'{"at": %d}' % number for number in numbers), b"{}", None)
    decoding = {"value": "id string, at bigint"}, "only"
    bad = decode_json(rows, *decoding, epoch=Epoch("at", unit)).collect()
    refused = [number for number, time in numbers.items() if time is None]
    assert [bytes(row.value) for row in bad] == [b'{"at": %d}' % number for number in refused]
    words = f"value: field at is not between the years 1 and 9999 in {unit}; event_time_unit"
    assert all(row.reason.startswith(words) for row in bad)
    good = decode_json(rows, decoding[0], "skip", epoch=Epoch("at", unit))
    assert good.select("value.*").dtypes == [("id", "string"), ("at", "timestamp")]
    times = [row.us for row in good.select(F.unix_micros("value.at").alias("us")).collect()]
    wanted = [time for time in numbers.values() if time is not None]
    assert times == [*wanted, None, None]


def test_keys_and_values_are_json_and_reasons_of_the_source_stay(spark: "SparkSession") -> None:
    rows = spark.createDataFrame(
        [
            (b'{"user": "ann"}', b'{"n": 1}', None),
            (b'{"user": "bob"}', b'{"n": "x"}', None),
            (b"ann", b"{}", None),
            (b'{"user": "cid"}', b"{}", "headers: too many"),
            (None, None, None),
        ],
        "key binary, value binary, reason string",
    )
    schemas = {"key": "user string", "value": SCHEMA}
    reasons = [
        None,
        "value: it is not JSON of the schema: field n is no int",
        "key: it is not JSON of the schema",
        "headers: too many",
        None,
    ]
    marked = decode_json(rows, schemas, "mark")
    assert [row.reason for row in marked.collect()] == reasons
    assert marked.schema == rows.schema
    assert [row.reason for row in decode_json(rows, schemas, "only").collect()] == reasons[1:4]
    good = decode_json(rows, schemas, "skip").select("key.user", "value.n").collect()
    assert [tuple(row) for row in good] == [("ann", 1), (None, None)]


def test_a_failure_names_the_record(spark: "SparkSession") -> None:
    rows = decode_json(records(spark, GOOD[0], BAD[-1]), {"value": SCHEMA}, "fail")
    words = "topic orders, partition 3, offset 1 does not decode: value: it is not JSON"
    with pytest.raises(PySparkException, match=words):
        rows.select("topic").collect()


def test_json_is_parsed_once(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    rows = decode_json(records(spark, *GOOD), {"value": SCHEMA}, "skip")
    rows.filter("value.n > 0").select("value.id", "value.amount").explain()
    # Once more only to find the field of a row that is refused.
    assert capsys.readouterr().out.count("columnNameOfCorruptRecord") == 1


def test_a_stream_is_decoded_as_a_table_is(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "records.txt").write_bytes(b"\n".join([GOOD[0], BAD[-1], GOOD[-1]]))
    lines = spark.readStream.text(str(tmp_path))
    rows = decode_json(lines, {"value": SCHEMA}, "skip").select("value.*")
    timed = rows.withWatermark("at", "1 second")
    writer = timed.writeStream.format("memory").queryName("decoded")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert [row.id for row in spark.table("decoded").collect()] == ["a", "é"]


@pytest.mark.parametrize(
    ("schema", "words"), [("id strin", "'id strin' is not Spark's"), ("int", "'int' has no fields")]
)
def test_a_bad_schema_is_one_line(spark: "SparkSession", schema: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        decode_json(records(spark, *GOOD), {"value": schema}, "skip")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column_type", "values", "pack"),
    [
        ("int", [0, 1, -1, 255, 2**31 - 1, -(2**31)], struct.Struct(">i").pack),
        ("long", [0, 1, -1, 2**40, 2**63 - 1, -(2**63)], struct.Struct(">q").pack),
        ("string", ["", "ann", "é€𝄞"], str.encode),
        ("binary", [b"", b"\x00\xff"], bytes),
    ],
)
def test_keys_are_as_javas_serializers_write_them(
    spark: "SparkSession", column_type: str, values: list[object], pack: type[bytes]
) -> None:
    rows = spark.createDataFrame([(each,) for each in [*values, None]], f"`a b` {column_type}")
    keys = rows.select(key_column(rows.schema, ["a b"]).alias("key")).collect()
    assert [row.key and bytes(row.key) for row in keys[:-1]] == [pack(each) for each in values]
    assert keys[-1].key is None


def test_several_columns_or_a_struct_are_json(spark: "SparkSession") -> None:
    rows = spark.sql(
        "SELECT 'ann' AS user, CAST(NULL AS int) AS n, "
        "named_struct('start', timestamp'2024-05-01 10:00:00.000001+02:00') AS window"
    )
    both = key_column(rows.schema, ["user", "n"]).alias("both")
    window = key_column(rows.schema, ["window"]).alias("window")
    (row,) = rows.select(both, window).collect()
    assert bytes(row.both) == b'{"user":"ann","n":null}'
    assert bytes(row.window) == b'{"start":"2024-05-01T08:00:00.000001Z"}'


def test_what_cannot_be_a_key_is_named(spark: "SparkSession") -> None:
    rows = spark.sql("SELECT 1.5D AS amount")
    with pytest.raises(PipelineError, match=r"key amount is double: .* cast it"):
        key_column(rows.schema, ["amount"])
    with pytest.raises(PipelineError, match="key user: the rows have amount"):
        key_column(rows.schema, ["user"])


def test_spark_takes_decoded_batches_as_they_are(spark: "SparkSession") -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "price", "type": PRICE},
            {"name": "tags", "type": {"type": "map", "values": "int"}},
            {"name": "lines", "type": {"type": "array", "items": LINE}},
        ],
    }
    value = {
        "id": "a",
        "at": datetime(2024, 5, 1, 8, tzinfo=UTC),
        "day": date(2024, 5, 1),
        "price": Decimal("1.25"),
        "tags": {"x": 1},
        "lines": [{"n": 1}, {"n": 2}],
    }
    data = BytesIO()
    schemaless_writer(data, schema, value)
    options = {"key.format": "int", "value.format": "avro", "value.schema": json.dumps(schema)}
    spark.dataSource.register(_source_of(struct.pack(">i", 5), data.getvalue()))
    (row,) = spark.read.format("one-record").options(**options).load().collect()
    assert row.key == 5
    assert row.value.asDict(recursive=True) == value | {"at": row.value.at}
    assert row.value.at.timestamp() == value["at"].timestamp()


def _source_of(key: bytes, value: bytes) -> type[DataSource]:
    # Classes made in a function travel to Spark's workers whole.
    class OneRecord(DataSource, DataSourceReader):
        @classmethod
        def name(cls) -> str:
            return "one-record"

        def schema(self) -> StructType:
            raw = StructType().add("key", BinaryType()).add("value", BinaryType())
            return decoded_schema(raw, read_decoding(Options(self.options)))

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
            return self

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
            batch = pa.RecordBatch.from_pydict({"key": [key], "value": [value]})
            yield read_decoding(Options(self.options)).apply(batch)

    return OneRecord
