"""A source's options about formats: what they make, and how they are refused."""

import json
import pickle
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructType

from moldau.pipelines.connector.columns import decoded_schema
from moldau.pipelines.connector.decoding_options import read_decoding
from moldau.pipelines.connector.options import Options
from moldau.pipelines.errors import OptionError

SOURCE = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType(), nullable=False)
)
USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
BATCH = pa.RecordBatch.from_pylist(
    [{"key": struct.pack(">i", 5), "value": b"\x06ann", "topic": "users"}],
    to_arrow_schema(SOURCE, timezone="UTC"),
)


def test_without_options_bytes_stay() -> None:
    decoding = read_decoding(Options({}))
    assert decoding.apply(BATCH) == BATCH
    assert decoded_schema(SOURCE, decoding) == SOURCE


def test_options_make_decoders_that_travel(tmp_path: Path) -> None:
    path = tmp_path / "user.avsc"
    path.write_text(json.dumps(USER))
    options = Options(
        {
            "key.format": "int",
            "value.format": "AVRO",
            "value.schema": str(path),
            "value.header": "none",
        }
    )
    decoding = pickle.loads(pickle.dumps(read_decoding(options)))
    options.check_unknown()
    path.unlink()
    batch = decoding.apply(BATCH)
    assert batch.to_pylist() == [{"key": 5, "value": {"name": "ann"}, "topic": "users"}]
    schema = decoded_schema(SOURCE, decoding)
    assert schema.simpleString() == "struct<key:int,value:struct<name:string>,topic:string>"
    assert to_arrow_schema(schema, timezone="UTC").equals(batch.schema)


@pytest.mark.parametrize("on_error", ["only", "mark"])
def test_what_does_not_decode_keeps_its_columns(on_error: str) -> None:
    decoding = read_decoding(Options({"value.format": "long", "decodeErrors": on_error}))
    schema = decoded_schema(SOURCE, decoding)
    bad = decoding.apply(BATCH)
    assert to_arrow_schema(schema, timezone="UTC").equals(bad.schema)
    assert bad.column("reason").to_pylist() == ["value: 4 bytes, long has 8"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"value.format": "xml"}, "option value.format=xml: raw or string or int"),
        ({"value.format": "json"}, "option value.format=json: Spark itself decodes JSON"),
        ({"decodeErrors": "ignore"}, "option decodeErrors=ignore: fail or skip or only or mark"),
        ({"key.schema": "{}"}, "option key.schema: key.format=raw has none; give key.format"),
        ({"value.format": "avro"}, "value.format=avro, value.schema: a schema is missing"),
        ({"value.format": "avro", "value.schema": "no.avsc"}, r"value.schema: cannot read no.avsc"),
        (
            {"value.format": "avro", "value.schema": '"long"', "value.message": "A"},
            "option value.message: value.format=avro has none",
        ),
        (
            {"key.format": "protobuf", "key.schema": "a.desc"},
            "key.format=protobuf, key.schema: .* name of a message: add key.message",
        ),
        (
            {"value.format": "avro", "value.schema": '"long"', "value.header": "maybe"},
            "option value.header=maybe: auto or confluent or none",
        ),
        (
            {"value.format": "int", "value.header": "none"},
            "value.header: value.format=int has none",
        ),
    ],
)
def test_what_cannot_be_is_one_line(texts: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        read_decoding(Options(texts))
    assert "\n" not in str(caught.value)
