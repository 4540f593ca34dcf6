"""The table that both engines are asked about: every type, and values at their edges."""

import json
from typing import TYPE_CHECKING, Any, Final

from moldau.pipelines.decoding.json_columns import decode_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = {
    "n": "int", "i": "int", "l": "bigint", "sm": "smallint", "d": "double", "f": "float",
    "dc": "decimal(10,2)", "s": "string", "t": "string", "b": "boolean", "ts": "timestamp",
    "dt": "date", "a": "array<int>", "m": "map<string,double>",
    "st": "struct<x: int, y: struct<z: string>>",
}  # fmt: skip
ROWS: Final[list[dict[str, object]]] = [
    {"n": 0, "i": 7, "l": 9_000_000_000, "sm": 3, "d": 2.675, "f": 1.5, "dc": 12.34,
     "s": "Příliš žluťoučký", "t": "l", "b": True, "ts": "2026-02-28T23:59:59.123456Z",
     "dt": "2026-02-28", "a": [1, 2, 3], "m": {"k": 1.5}, "st": {"x": 1, "y": {"z": "in"}}},
    {"n": 1, "i": -7, "l": -3, "sm": -3, "d": -0.5, "f": -1.25, "dc": -0.05, "s": "  pad ded ",
     "t": " ", "b": False, "ts": "1969-12-31 23:59:59.5+01:00", "dt": "1960-01-31", "a": [],
     "m": {}, "st": {"x": None, "y": None}},
    {"n": 2, "i": 0, "l": 0, "sm": 0, "d": 0.0, "f": 0.0, "dc": 0, "s": "", "t": "", "b": None,
     "ts": "2024-12-30T00:00:00Z", "dt": "2024-12-30", "a": [None, 5], "m": {"k": None}},
    {"n": 3},
    {"n": 4, "i": 1_073_741_823, "l": 1, "sm": 100, "d": "NaN", "f": 3.25, "dc": 99999999.99,
     "s": "🤦 emoji, and, commas", "t": ", ", "b": True, "ts": "2026-01-01", "dt": "2026-01-01",
     "a": [7], "m": {"k": 2, "j": -1}, "st": {"x": 5, "y": {"z": "ěš"}}},
    {"n": 5, "i": 7, "l": 5, "sm": 3, "d": 1e15, "f": 100.5, "dc": 5.5, "s": "12", "t": "1",
     "b": False, "ts": 1_700_000_000, "dt": "2023-11-14", "a": [0], "m": None,
     "st": {"x": 2, "y": {"z": None}}},
    {"n": 6, "i": 12, "l": 2, "sm": 5, "d": 1234.5678, "f": -0.5, "dc": 1.25, "s": "ab\"c\\\n",
     "t": "b", "b": True, "ts": "2026-03-29T01:30:00.5Z", "dt": "2026-03-29", "a": [1, None],
     "m": {"x": 0.1}, "st": None},
]  # fmt: skip
MORE_ROWS: Final[list[dict[str, object]]] = [
    {"n": 7, "i": 3, "l": 86_400, "sm": 1, "d": 0.1, "f": 0.1, "dc": 0.01, "s": "a", "t": "a",
     "b": True, "ts": "2024-02-29T12:00:00Z", "dt": "2024-02-29", "a": [3, 3, 1], "m": {"k": 0.5},
     "st": {"x": 3, "y": {"z": "a"}}},
    {"n": 8, "i": 100, "l": 1_700_000_000, "sm": 12, "d": 2.5, "f": 2.5, "dc": 2.5, "s": "A%b_c",
     "t": "%", "b": False, "ts": "2000-12-31T23:59:59.999999Z", "dt": "2000-12-31", "a": [-1],
     "m": {"k": -0.0}, "st": {"x": -1, "y": {"z": ""}}},
    {"n": 9, "i": -1, "l": -86_401, "sm": -12, "d": -2.5, "f": -2.5, "dc": -2.5, "s": "tab\there",
     "t": "\t", "b": None, "ts": "1900-01-01T00:00:00Z", "dt": "1900-03-01", "a": None,
     "m": {"k": 1e-7}, "st": {"x": 0, "y": {"z": " "}}},
    {"n": 10, "i": 31, "l": 10, "sm": 7, "d": 1e-5, "f": 1e-5, "dc": 0.1, "s": "3.14", "t": "3",
     "b": True, "ts": "2026-10-25T00:59:59.000001Z", "dt": "2026-10-31", "a": [10, 0],
     "m": {"k": 123456789.125}, "st": {"x": 10, "y": {"z": "3"}}},
    {"n": 11, "i": 2, "l": 20, "sm": 2, "d": 33333.33333, "f": 7.7, "dc": 1000.0, "s": "true",
     "t": "no", "b": False, "ts": "1970-01-01T00:00:00Z", "dt": "1970-01-01", "a": [],
     "m": {"j": 1}, "st": {"x": 2}},
    {"n": 12, "i": 5, "l": 50, "sm": 30, "d": -1234567.891, "f": 1234.5, "dc": -99.99,
     "s": "2026-01-31", "t": "01", "b": True, "ts": "2026-12-31T23:00:00Z", "dt": "2027-01-01",
     "a": [5], "m": {"k": 5}, "st": {"x": 5, "y": {"z": "2026"}}},
    {"n": 13, "i": 8, "l": 8, "sm": 8, "d": 8.0, "f": 8.0, "dc": 8.0, "s": "ZEBRA zebra", "t": "z",
     "b": True, "ts": "2026-06-15T12:30:45.5Z", "dt": "2026-06-15", "a": [8, 8], "m": {"k": 8.0},
     "st": {"x": 8, "y": {"z": "Z"}}},
]  # fmt: skip
"""For statements that are made by chance."""


def json_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows as a topic has them."""
    return [json.dumps(row) for row in rows]


def read_by_spark(spark: "SparkSession", texts: list[str]) -> "DataFrame":
    """Return what Spark makes of records, with their places."""
    ddl = ", ".join(f"{name} {its_type}" for name, its_type in COLUMNS.items())
    records = spark.createDataFrame(
        [(text.encode(), "differential", 0, at) for at, text in enumerate(texts)],
        "value binary, topic string, partition int, offset bigint",
    )
    decoded = decode_json(records, {"value": ddl}, "fail")
    return decoded.selectExpr("value.*", "partition AS _partition", "offset AS _offset")
