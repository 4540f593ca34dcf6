"""Rows as records, and what does not fit."""

import json
import struct

import pytest

from moldau.pipelines.sql.insert_values import InsertError, records_of
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, InsertValues, relation_of
from moldau.pipelines.sql.ports import OutRecord
from moldau.pipelines.sql.relations import Relation, RelationKind


def _relation(text: str) -> Relation:
    (statement,) = parse(text)
    assert isinstance(statement, CreateSource)
    return relation_of(statement)


def _records(relation: Relation, text: str) -> list[OutRecord]:
    (statement,) = parse(text)
    assert isinstance(statement, InsertValues)
    return records_of(statement, relation)


ALL = _relation("""
CREATE STREAM s (id STRING KEY, a TINYINT, b BIGINT, c DOUBLE, d DECIMAL(6,2), e BOOLEAN,
  f TIMESTAMP, g DATE, h BINARY, i ARRAY<INT>, j MAP<STRING, DOUBLE>, k STRUCT<x: INT, y: STRING>,
  l TIMESTAMP_NTZ) WITH (topic='s')
""")
USERS = _relation("CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING) WITH (topic='users')")
CLICKS = _relation("CREATE STREAM c (id STRING KEY, at BIGINT) WITH (timestamp='at')")
PAIRS = _relation("CREATE STREAM p (a STRING KEY, b INT KEY, c INT) WITH (topic='p')")


def test_each_type_is_written_as_spark_reads_it() -> None:
    (record,) = _records(
        ALL,
        "INSERT INTO s VALUES ('k', -128, 9007199254740993, 1, 1234.5, true,"
        " '2026-01-02 03:04:05.678+01:00', DATE '2026-01-02', X'00ff', array(1, NULL),"
        " map('a', 0.5), named_struct('y', 'ž', 'x', 1), '2026-01-02T03:04:05')",
    )
    assert record.key == b"k"
    assert record.timestamp_ms is None
    assert record.value is not None
    text = record.value.decode()
    # Neither a large number nor a decimal may pass through a float.
    assert '"b":9007199254740993,' in text
    assert '"d":1234.50,' in text
    assert json.loads(text) == {
        "a": -128,
        "b": 9007199254740993,
        "c": 1.0,
        "d": 1234.5,
        "e": True,
        "f": "2026-01-02T02:04:05.678000Z",
        "g": "2026-01-02",
        "h": "AP8=",
        "i": [1, None],
        "j": {"a": 0.5},
        "k": {"x": 1, "y": "ž"},
        "l": "2026-01-02T03:04:05.000000",
    }


def test_columns_can_be_named_and_left_out() -> None:
    first, second = _records(USERS, "INSERT INTO users (NAME, id) VALUES ('ann', 7), (NULL, -1)")
    assert first == OutRecord(struct.pack(">q", 7), b'{"name":"ann"}')
    assert second == OutRecord(struct.pack(">q", -1), b'{"name":null}')
    (record,) = _records(ALL, "INSERT INTO s (a) VALUES (1)")
    assert record.key is None


def test_a_record_can_be_given_a_time() -> None:
    (record,) = _records(
        USERS, "INSERT INTO users (id, rowtime) VALUES (1, '2026-01-01 00:00:00.5')"
    )
    assert record.timestamp_ms == 1_767_225_600_500


def test_an_event_time_may_be_a_number() -> None:
    records = _records(
        CLICKS,
        "INSERT INTO c VALUES ('a', 1767268800001), ('b', '2026-01-01 13:00:00+01:00'), "
        "('c', NULL)",
    )
    assert [json.loads(each.value or b"")["at"] for each in records] == [
        1767268800001,
        1767268800000,
        None,
    ]
    longs = _relation(
        "CREATE STREAM c (at BIGINT) WITH (format='long', event_time='at', event_time_unit='s')"
    )
    (record,) = _records(longs, "INSERT INTO c VALUES (TIMESTAMP '1970-01-01 00:00:05')")
    assert record.value == struct.pack(">q", 5)


def test_a_key_of_several_columns_is_json() -> None:
    (record,) = _records(PAIRS, "INSERT INTO p VALUES ('x', 2, 3)")
    assert record == OutRecord(b'{"a":"x","b":2}', b'{"c":3}')


@pytest.mark.parametrize(
    ("name", "kind", "value", "data"),
    [
        ("string", "STRING", "'ž'", "ž".encode()),
        ("raw", "BINARY", "X'0001'", b"\0\1"),
        ("int", "INT", "-2", struct.pack(">i", -2)),
        ("long", "BIGINT", "3", struct.pack(">q", 3)),
        ("double", "DOUBLE", "0.5", struct.pack(">d", 0.5)),
        ("float", "FLOAT", "NULL", None),
    ],
)
def test_plain_formats(name: str, kind: str, value: str, data: bytes | None) -> None:
    relation = _relation(f"CREATE STREAM s (v {kind}) WITH (topic='s', format='{name}')")
    assert _records(relation, f"INSERT INTO s VALUES ({value})") == [OutRecord(None, data)]


@pytest.mark.parametrize(
    ("relation", "text", "message"),
    [
        (ALL, "(a) VALUES ('1')", "column a: '1' is no tinyint"),
        (ALL, "(a) VALUES (1.5)", "column a: 1.5 is no tinyint"),
        (ALL, "(a) VALUES (128)", "column a: 128 does not fit tinyint"),
        (ALL, "(c) VALUES (1e999)", "column c: 1E+999 does not fit double"),
        (ALL, "(d) VALUES (10000)", "column d: 10000 does not fit decimal(6, 2)"),
        (ALL, "(d) VALUES (0.001)", "column d: 0.001 does not fit decimal(6, 2)"),
        (ALL, "(e) VALUES (1)", "column e: 1 is no boolean"),
        (ALL, "(f) VALUES ('noon')", "column f: 'noon' is no timestamp"),
        (ALL, "(g) VALUES ('2026-02-30')", "column g: '2026-02-30' is no date"),
        (
            ALL,
            "(l) VALUES ('2026-01-01T00:00:00Z')",
            "column l: '2026-01-01T00:00:00Z' has a zone, and timestamp_ntz has none",
        ),
        (ALL, "(id) VALUES (5)", "column id: 5 is no string"),
        (ALL, "(id) VALUES (upper('a'))", "column id: UPPER('a') is no string"),
        (ALL, "(i) VALUES (array('a'))", "column i: 'a' is no int"),
        (
            ALL,
            "(k) VALUES (named_struct('z', 1))",
            "column k: z is no field of struct<x: int, y: string>: use named_struct",
        ),
        (CLICKS, "(at) VALUES ('noon')", "column at: 'noon' is no timestamp"),
        (
            CLICKS,
            "(at) VALUES (253402300800000)",
            "column at: 253402300800000 is not between the years 1 and 9999, in ms",
        ),
        (ALL, "(aa) VALUES (1)", "s has no column aa: did you mean a?"),
        (ALL, "(a, A) VALUES (1, 2)", "column A is there twice"),
        (USERS, "VALUES (1, 'a', 2)", "3 values for 2 columns: id, name"),
        (USERS, "VALUES (1, 'a'), ('x', 'b')", "row 2, column id: 'x' is no bigint"),
        (USERS, "(name) VALUES ('a')", "column id: a table's key cannot be null"),
    ],
)
def test_what_does_not_fit_is_named(relation: Relation, text: str, message: str) -> None:
    with pytest.raises(InsertError) as caught:
        _records(relation, f"INSERT INTO t {text}")
    assert str(caught.value) == message


def test_formats_that_need_a_schema_are_refused() -> None:
    relation = Relation("s", RelationKind.STREAM, "s", ALL.columns, "avro")
    with pytest.raises(InsertError) as caught:
        _records(relation, "INSERT INTO s (a) VALUES (1)")
    assert str(caught.value) == (
        "s is avro, which INSERT ... VALUES does not write: it writes json, string, raw, int, "
        "long, float, double"
    )
    relation = Relation("s", RelationKind.STREAM, "s", ALL.columns, "int")
    with pytest.raises(InsertError, match="s is int: its value is one int column"):
        _records(relation, "INSERT INTO s (a) VALUES (1)")
