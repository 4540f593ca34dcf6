"""Keys as bytes, without Spark."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.key_bytes import encode_key, partition_of


@pytest.mark.parametrize(
    ("types", "key", "data"),
    [
        ({"user": "string"}, "Žofie", "Žofie".encode()),
        ({"user": "int"}, -2, b"\xff\xff\xff\xfe"),
        ({"user": "bigint"}, 1, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        ({"user": "binary"}, b"\x00", b"\x00"),
        ({"a": "string", "b": "int"}, ("é", 1), '{"a":"é","b":1}'.encode()),
        ({"a": "string", "b": "int"}, {"b": None, "a": "x"}, b'{"a":"x","b":null}'),
        ({"a": "struct<x:int>"}, {"x": 1}, b'{"x":1}'),
    ],
)
def test_bytes_are_javas(types: dict[str, str], key: object, data: bytes) -> None:
    assert encode_key(types, key) == data


@pytest.mark.parametrize(
    ("types", "key", "words"),
    [
        ({"user": "string"}, 1, "key user=1: string is wanted"),
        ({"user": "int"}, True, "key user=True: int is wanted"),
        ({"user": "int"}, 2**31, "key user=2147483648: it does not fit int"),
        ({"a": "int", "b": "int"}, 1, "a tuple or a dict of a, b is wanted"),
        ({"a": "int", "b": "int"}, (1, 2, 3), "a tuple or a dict of a, b is wanted"),
        ({"a": "int", "b": "binary"}, (1, b""), "give it as JSON has it"),
    ],
)
def test_a_key_that_is_none_of_the_table(types: dict[str, str], key: object, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        encode_key(types, key)


@pytest.mark.parametrize(("key", "partition"), [(b"21", 340), (b"foobar", 166)])
def test_keys_are_where_javas_client_puts_them(key: bytes, partition: int) -> None:
    # Java's hashes of these are -973932308 and -790332482.
    assert partition_of(key, 1000) == partition
