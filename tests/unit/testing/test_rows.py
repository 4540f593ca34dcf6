from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.declared import Source
from moldau.testing.rows import decode_row, encode_row, encode_time, read_time

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def source(value_format: str = "json") -> Source:
    return Source("orders", value_format, None, "raw", None, "fail", "earliest")


def test_rows_are_json() -> None:
    row = {"at": NOON, "day": date(2026, 1, 2), "price": Decimal("1.10"), "name": "Písek"}
    assert encode_row(source(), row, ()) == (
        None,
        '{"at":"2026-01-01T12:00:00+00:00","day":"2026-01-02","price":"1.10","name":"Písek"}'.encode(),
    )


def test_what_is_not_a_row_is_sent_as_it_is() -> None:
    assert encode_row(source("avro"), b"\0", ()) == (None, b"\0")
    assert encode_row(source("string"), "ř", ()) == (None, "ř".encode())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: encode_row(source("avro"), {}, ()), "orders is avro: send its values as bytes"),
        (lambda: encode_row(source(), "text", ["id"]), "orders has keys: send rows as dicts"),
        (lambda: encode_row(source(), {"a": 1}, ["id"]), "a row has no id, which is its key"),
        (lambda: encode_row(source(), {"a": {1}}, ()), "1} is no JSON"),
        (lambda: encode_time(source("avro"), "at", NOON), "send a row that is later"),
        (lambda: decode_row(b"\xff"), "is not JSON: look at it with records"),
        (lambda: read_time(source(), "at", "noon"), "at='noon' is no time"),
        (lambda: read_time(source(), "at", True), "at=True is no time"),
    ],
)
def test_mistakes_are_named(made, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PipelineError, match=said):
        made()


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        datetime(2026, 1, 1, 12),  # noqa: DTZ001 - as somebody may write it
        datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
        "2026-01-01T12:00:00Z",
        "2026-01-01 12:00:00",
        "2026-01-01T13:00:00.000+01:00",
        1767268800,
    ],
)
def test_times_are_read_as_spark_reads_them(value: object) -> None:
    assert read_time(source(), "at", value) == NOON


def test_a_tombstone_is_none() -> None:
    assert decode_row(None) is None
    assert decode_row(b'{"a":1}') == {"a": 1}


def test_times_may_be_numbers() -> None:
    epoch = replace(source(), epoch=Epoch("at", "ms"))
    assert read_time(epoch, "at", 1767268800000) == NOON
    assert encode_time(epoch, "at", NOON) == b'{"at":1767268800000}'
    assert encode_row(epoch, {"at": NOON, "n": 1}, ()) == (None, b'{"at":1767268800000,"n":1}')
    assert encode_row(epoch, {"at": 5}, ()) == (None, b'{"at":5}')
    with pytest.raises(PipelineError, match="at=253402300800 is no time"):
        read_time(source(), "at", 253402300800)
