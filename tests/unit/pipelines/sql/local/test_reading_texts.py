"""Times, JSON and AS OF, each by itself."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from sqlglot import exp

from moldau.pipelines.sql.language.queries import AsOf, AsOfOffsets, AsOfTime
from moldau.pipelines.sql.local.as_of import read_as_of
from moldau.pipelines.sql.local.json_exact import BadRecordError, read_json
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.parsing import parse
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.times import UnclearTimeError, read_date, read_timestamp
from moldau.pipelines.sql.local.types import (
    EPOCHS,
    SparkType,
    arrow_type,
    common_type,
    from_arrow,
    parse_type,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31 12:00:00", NOON),
        (" 2026-01-31 14:00:00+02:00 ", NOON),
        ("2026-01-31T12:00", NOON),
        ("2026-1-31 12:0:0.1234567", NOON.replace(microsecond=123456)),
        ("2026-01-31", NOON.replace(hour=0)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-02-30", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_time(words: str, expected: datetime | None) -> None:
    assert read_timestamp(words) == expected


@pytest.mark.parametrize("words", ["2026-01-31T12:00:00 Europe/Prague", "12026-01-01", "12:30"])
def test_a_time_that_only_spark_knows(words: str) -> None:
    with pytest.raises(UnclearTimeError):
        read_timestamp(words)


def test_a_date() -> None:
    assert read_date("2026-1-31") == date(2026, 1, 31)
    assert read_date("2026-02-30") is None
    with pytest.raises(UnclearTimeError):
        read_date("2026-01-31 12:00:00")


FIELDS = [("n", SparkType("int")), ("d", SparkType("decimal", 5, 2)), ("s", SparkType("string"))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"n": 1, "d": 1.005, "s": 15}', {"n": 1, "d": Decimal("1.01"), "s": "15"}),
        (b'{"more": 1}', {"n": None, "d": None, "s": None}),
        (b'{"n": 1, "n": 2} ...', {"n": 2, "d": None, "s": None}),
    ],
)
def test_json_by_sparks_rules(data: bytes, expected: dict[str, object]) -> None:
    assert read_json(data, FIELDS) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"n": 1.0}', "not JSON of the schema"),
        (b'{"n": 2147483648}', "not JSON of the schema"),
        (b'{"d": 1000}', "not JSON of the schema"),
        (b'{"d": true}', "not JSON of the schema"),
        (b'{"n": "x", "n": 1}', "not JSON of the schema"),
        (b"{", "not JSON of the schema"),
        (b"7", "not JSON of the schema"),
        (b" ", "it is empty"),
        (b"\xff", "it is not UTF-8"),
    ],
)
def test_json_that_does_not_decode(data: bytes, words: str) -> None:
    with pytest.raises(BadRecordError, match=words):
        read_json(data, FIELDS)


@pytest.mark.parametrize(
    "data", [b"{'n': 1}", b'[{"n": 1}]', b'{"s": {"x": 1}}', b'{"d": "1"}', b'{"s": 1.5}']
)
def test_json_that_only_spark_reads(data: bytes) -> None:
    with pytest.raises(GoesToSpark):
        read_json(data, FIELDS)


def test_a_key_twice_in_a_map_is_for_spark() -> None:
    counts = [("m", parse_type("map<string,int>"))]
    assert read_json(b'{"m": {"a": 1, "b": 2}}', counts) == {"m": [("a", 1), ("b", 2)]}
    with pytest.raises(GoesToSpark, match="a key twice in a map"):
        read_json(b'{"m": {"a": 1, "a": 2}}', counts)


def as_of(words: str) -> AsOf | None:
    table = parse(f"SELECT * FROM t {words}").find(exp.Table)
    assert table is not None
    return read_as_of(ParsedNode(table))


def test_as_of() -> None:
    assert as_of("") is None
    time = as_of("TIMESTAMP AS OF '1970-01-01 01:00:01.5+01:00'")
    assert isinstance(time, AsOfTime)
    assert time.ms == 1_500
    assert as_of("""VERSION AS OF '{"1":98,"0":120}'""") == AsOfOffsets(((0, 120), (1, 98)))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("TIMESTAMP AS OF 'yesterday'", "no time: write it as '2026-01-31 12:00:00'"),
        ("VERSION AS OF '{\"0\": -1}'", "not of offsets: write them by partition"),
        ("VERSION AS OF '120'", "not of offsets"),
        ("VERSION AS OF 3", "AS OF takes a text in quotes"),
    ],
)
def test_as_of_what_is_nothing(words: str, error: str) -> None:
    with pytest.raises(QueryError, match=error):
        as_of(words)


@pytest.mark.parametrize(
    "ddl",
    [
        "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
        "date", "timestamp", "decimal(10,2)", "array<int>", "map<string, array<double>>",
        "struct<start: timestamp, end: struct<a: int>>",
    ],
)  # fmt: skip
def test_types_there_and_back(ddl: str) -> None:
    parsed = parse_type(ddl)
    assert str(parsed) == ddl
    assert from_arrow(arrow_type(parsed)) == parsed


def test_types_that_meet() -> None:
    def meet(one: str, other: str) -> str:
        return str(common_type(parse_type(one), parse_type(other)))

    assert meet("int", "bigint") == "bigint"
    assert meet("float", "int") == "double"
    assert meet("decimal(10,2)", "int") == "decimal(12,2)"
    assert meet("date", "timestamp") == "timestamp"
    assert meet("string", "int") == "None"


TIMES = [
    ("at", parse_type("timestamp")),
    ("inner", parse_type("struct<day: date>")),
    ("list", parse_type("array<timestamp>")),
    ("ms", EPOCHS["ms"]),
]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"n": "x"}', "field n is no int"),
        (b'{"d": 123456789}', r"field d is no decimal\(5,2\)"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(data: bytes, words: str) -> None:
    with pytest.raises(BadRecordError, match=f"it is not JSON of the schema: {words}$"):
        read_json(data, FIELDS)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"at": 1767225600000}', "field at is not between the years 1 and 9999; a number is"),
        (b'{"at": "12345-01-01T00:00:00Z"}', "field at is not between the years 1 and 9999;"),
        (b'{"at": "-0001-01-01"}', "field at is not between"),
        (b'{"at": "9999-12-31T23:59:59-01:00"}', "field at is not between"),
        (b'{"inner": {"day": "+10000-01-01"}}', "field inner.day is not between"),
        (b'{"inner": {"day": "never"}}', "field inner.day is no date"),
        (b'{"list": [0, 253402300800]}', "field list is not between"),
        (b'{"list": ["never"]}', "field list is no array"),
        (b'{"ms": 253402300800000}', "field ms is not between the years 1 and 9999 in ms; event"),
        (b'{"ms": "2026-01-01"}', "field ms is no bigint"),
        (b'{"ms": 1.5}', "field ms is no bigint"),
        (b'{"at": 9223372036854775808}', "field at is no timestamp"),
    ],
)
def test_times_are_of_the_years_1_to_9999(data: bytes, words: str) -> None:
    with pytest.raises(BadRecordError, match=words):
        read_json(data, TIMES)


def test_numbers_since_1970_are_times() -> None:
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert read_json(b'{"at": 1, "ms": 1000}', TIMES) == {
        "at": second,
        "inner": None,
        "list": None,
        "ms": second,
    }
