"""The same key is found, whoever has written it."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.views.key_shape import KeyShape, Spot

WINDOW = "struct<start: timestamp, end: timestamp>"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = 1_767_268_800_000_000
# As Spark writes the key of `GROUP BY user, window(at, '1 minute')`.
WRITTEN = (
    b'{"user":"ann","window":{"start":"2026-01-01T12:00:00.000000Z",'
    b'"end":"2026-01-01T12:01:00.000000Z"}}'
)


@pytest.mark.parametrize(
    ("kind", "key", "written"),
    [
        ("STRING", "ann", b"ann"),
        ("string", "Zoë", b"Zo\xc3\xab"),
        ("binary", b"\x00\xff", b"\x00\xff"),
        ("int", -2, b"\xff\xff\xff\xfe"),
        ("INTEGER", 7, b"\x00\x00\x00\x07"),
        ("bigint", 7, b"\x00\x00\x00\x00\x00\x00\x00\x07"),
    ],
)
def test_a_plain_key_is_its_bytes(kind: str, key: object, written: bytes) -> None:
    shape = KeyShape({"id": kind})
    assert shape.encode(key) == (Spot(written), written)
    assert shape.find_spot(written) == Spot(written)
    assert shape.decode(Spot(written)) == {"id": key}


def test_a_number_of_another_size_is_no_key() -> None:
    assert KeyShape({"id": "int"}).find_spot(b"12345") is None
    assert KeyShape({"id": "bigint"}).find_spot(b"1234") is None


def test_a_window_is_beside_the_rest_of_the_key() -> None:
    shape = KeyShape({"user": "string", "window": WINDOW})
    assert shape.is_windowed
    spot = shape.find_spot(WRITTEN)
    assert spot is not None
    assert spot == Spot(shape.encode_rest("ann"), NOON_US, NOON_US + 60_000_000)
    window = {"start": NOON, "end": NOON + timedelta(minutes=1)}
    assert shape.decode(spot) == {"user": "ann", "window": window}
    assert shape.encode(("ann", window)) == (spot, WRITTEN)
    assert shape.encode({"window": window, "user": "ann"}) == (spot, WRITTEN)


def test_a_key_that_is_only_a_window() -> None:
    shape = KeyShape({"window": WINDOW})
    written = json.dumps(json.loads(WRITTEN)["window"], separators=(",", ":")).encode()
    spot = shape.find_spot(written)
    assert spot == Spot(shape.encode_rest(()), NOON_US, NOON_US + 60_000_000)
    window = {"start": NOON, "end": NOON + timedelta(minutes=1)}
    assert shape.encode(window) == (spot, written)
    assert shape.decode(spot) == {"window": window}


@pytest.mark.parametrize(
    "written",
    [
        b'{ "n": 1.10, "at": "2026-01-01T12:00:00Z", "name": "a/b\\u0007\\u00e9", "x": 5 }',
        b'{"x":5.0,"name":"a\\/b\\u0007\xc3\xa9","at":"2026-01-01T13:00:00.000+01:00","n":1.1}',
        b'{"n":11E-1,"at":"2026-01-01T12:00:00.000000Z","name":"a/b\\u0007\xc3\xa9","x":5}',
    ],
)
def test_how_json_is_written_does_not_matter(written: bytes) -> None:
    types = {"name": "string", "n": "double", "at": "timestamp", "x": "decimal(38,0)"}
    shape = KeyShape(types)
    at = NOON.astimezone(timezone(timedelta(hours=1)))
    spot, _ = shape.encode({"name": "a/b\aé", "n": 1.1, "at": at, "x": 5})
    assert shape.find_spot(written) == spot
    assert shape.decode(spot) == {"name": "a/b\aé", "n": 1.1, "at": NOON, "x": Decimal(5)}


def test_long_decimals_are_not_rounded() -> None:
    shape = KeyShape({"a": "decimal(38,10)", "b": "int"})
    one, other = (f'{{"a":123456789012345678901234567.{tail},"b":1}}' for tail in ("1", "2"))
    assert shape.find_spot(one.encode()) != shape.find_spot(other.encode())


def test_numbers_in_a_struct_are_the_same_however_they_came() -> None:
    shape = KeyShape({"at": "struct<x: double, y: double>"})
    assert shape.encode({"y": 2.5, "x": 1.0})[0] == shape.find_spot(b'{"x":1.0,"y":2.50}')


HOSTILE = (
    b"ann",
    b"[1]",
    b"\xff\xfe",
    b'{"user":"ann"}',
    b'{"user":"a","window":{}}',
    b'{"user":"a","window":{"start":"yesterday","end":"2026-01-01T12:00:00Z"}}',
    WRITTEN.replace(b'"ann"', b"1E999999999999"),
    WRITTEN.replace(b'"ann"', b'"\\ud800"'),
    WRITTEN.replace(b'"ann"', b"[" * 100_000 + b"]" * 100_000),
    WRITTEN.replace(b'"ann"', b"9" * 10_000),
)


@pytest.mark.parametrize("key", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_not_of_the_columns_is_no_key(key: bytes) -> None:
    assert KeyShape({"user": "string", "window": WINDOW}).find_spot(key) is None


def test_a_key_is_asked_for_with_all_of_its_columns() -> None:
    shape = KeyShape({"user": "string", "window": WINDOW})
    with pytest.raises(PipelineError, match="a tuple or a dict of user, window is wanted"):
        shape.encode("ann")
    with pytest.raises(PipelineError, match="no time"):
        shape.encode(("ann", {"start": 5, "end": 6}))
    with pytest.raises(PipelineError, match="cast it"):
        KeyShape({"n": "double"})
