"""Types as declarations have them."""

from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.pipelines.sql.relations import Column
from moldau.pipelines.sql.spark.column_ddl import ddl_of, type_of


def test_types_can_be_declared_again() -> None:
    fields = [StructField("start", TimestampType()), StructField("the end", TimestampType())]
    assert type_of(StructType(fields)) == "struct<start: timestamp, `the end`: timestamp>"
    kind = MapType(StringType(), ArrayType(StructType(fields[:1])))
    assert type_of(kind) == "map<string, array<struct<start: timestamp>>>"
    assert [type_of(each) for each in (DecimalType(10, 2), LongType())] == [
        "decimal(10,2)",
        "bigint",
    ]


def test_columns_are_quoted_where_they_need_it() -> None:
    columns = [Column("user", "string", is_key=True), Column("sum(amount)", "double")]
    assert ddl_of(columns) == "user string, `sum(amount)` double"
    assert ddl_of([]) == ""
