"""Topics that nobody has declared: their columns are guessed from the first records."""

import json
from typing import Any, Final

import duckdb
import pyarrow as pa

from moldau.client.sync_consumer import Consumer
from moldau.pipelines.sql.local.database import open_database
from moldau.pipelines.sql.local.records import QuestionLimits, Reading, read_records
from moldau.pipelines.sql.local.types import SparkType
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.sql.topic_spans import OffsetSpan, assign_topic, find_spans

KEY: Final = "_key"
SAMPLE_RECORDS: Final = 1_000
"""Of each partition, from its beginning."""
_MEMORY_BYTES: Final = 512 << 20
_TYPES: Final = {
    "BOOLEAN": "boolean", "UBIGINT": "bigint", "BIGINT": "bigint", "DOUBLE": "double",
    "VARCHAR": "string", "JSON": "string", "NULL": "string", "HUGEINT": "double",
    "UHUGEINT": "double",
}  # fmt: skip


def infer_relation(consumer: Consumer, topic: str) -> Relation:
    """Return a topic as a stream, with columns that its first records have.

    `_key` is a text if all keys are UTF-8, else bytes. Where all values are JSON objects the
    columns are their fields, and `value` otherwise: a text, or bytes. Times stay texts.
    """
    assign_topic(consumer, topic)
    spans = [
        OffsetSpan(each.key, each.start, min(each.end, each.start + SAMPLE_RECORDS))
        for each in find_spans(consumer, topic, None)
    ]
    reading = Reading(QuestionLimits())
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
    batches = [
        pa.RecordBatch.from_arrays([each.column(name) for name in schema.names], schema=schema)
        for each in read_records(consumer, spans, schema.names, reading)
    ]
    with open_database(_MEMORY_BYTES) as database:
        sample = pa.Table.from_batches(batches, schema)
        database.register("sample", sample)
        key = Column(KEY, _plain_type(database, "key"), is_key=True)
        fields = _fields(database)
        if fields is not None:
            return Relation(topic, RelationKind.STREAM, topic, (key, *fields), "json")
        its_type = _plain_type(database, "value")
    form = "string" if its_type == "string" else "raw"
    return Relation(topic, RelationKind.STREAM, topic, (key, Column("value", its_type)), form)


def _one(database: duckdb.DuckDBPyConnection, query: str) -> Any:
    row = database.execute(query).fetchone()
    assert row is not None, query
    return row[0]


def _plain_type(database: duckdb.DuckDBPyConnection, part: str) -> str:
    bad = _one(
        database,
        f"SELECT count(*) FROM sample WHERE {part} IS NOT NULL AND TRY(decode({part})) IS NULL",
    )
    return "binary" if bad else "string"


def _fields(database: duckdb.DuckDBPyConnection) -> list[Column] | None:
    """Return the fields of values that are all objects, None if they are not."""
    texts = "SELECT TRY(decode(value)) AS words FROM sample WHERE value IS NOT NULL"
    kinds = f"SELECT DISTINCT TRY(json_type(words)) FROM ({texts})"
    if database.execute(kinds).fetchall() != [("OBJECT",)]:
        return None
    structure = _one(database, f"SELECT json_group_structure(words::JSON) FROM ({texts})")
    found = json.loads(structure)
    if not isinstance(found, dict):
        # Objects without a field.
        return None
    return [
        Column(name, str(_type(given)))
        for name, given in found.items()
        # It would hide the key.
        if name.lower() != KEY
    ]


def _type(given: Any) -> SparkType:
    """Return the type of what DuckDB has found: a name, fields, or a list of one element."""
    if isinstance(given, dict):
        if not given:
            return SparkType("string")
        return SparkType("struct", parts=tuple(map(_type, given.values())), names=tuple(given))
    if isinstance(given, list):
        return SparkType("array", parts=(_type(given[0]),))
    return SparkType(_TYPES.get(given, "string"))
