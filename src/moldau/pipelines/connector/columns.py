"""The columns of a source, and records in exactly the form in which Spark takes them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.pipelines.connector.decoding_options import Decoding
from moldau.pipelines.connector.source_options import read_source_options
from moldau.pipelines.decoding.batches import REASON
from moldau.pipelines.decoding.spark_types import spark_type
from moldau.pipelines.errors import OptionError

HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SPARK_TYPES: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(HEADER),
}
"""What Spark's Kafka connector calls the types of its columns."""

ARROW_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
ARROW_TYPES: Final[Mapping[str, Any]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", ARROW_HEADER)),
}
"""What Spark makes of them: a batch of any other types is refused."""

PLACE_BYTES: Final = 4
"""The size of a list's place in Arrow."""


def source_schema(texts: Mapping[str, str]) -> StructType:
    """Return the schema that options ask for; all of them are looked at."""
    options = read_source_options(texts)
    fields = [StructField(name, SPARK_TYPES[name]) for name in options.columns]
    return decoded_schema(StructType(fields), options.decoding)


def check_schema(given: StructType, texts: Mapping[str, str]) -> None:
    """Refuse a schema that a user has given and that is not the source's own."""
    own = source_schema(texts)
    if given != own:
        raise OptionError(
            f"topics have the columns {own.simpleString()}, not {given.simpleString()}: leave "
            f".schema(...) out, and decode the value, as with from_json"
        )


def decoded_schema(source: StructType, decoding: Decoding) -> StructType:
    """Return the columns of a source whose keys and values are decoded."""
    decoded = {name: spark_type(each) for name, each in decoding.arrow_types.items()}
    fields = [
        StructField(field.name, decoded[field.name]) if field.name in decoded else field
        for field in source.fields
    ]
    if decoding.has_reasons:
        fields.append(StructField(REASON.name, StringType()))
    return StructType(fields)


class Shaper:
    """Makes of the client's batches what Spark takes, without a copy where the types are equal."""

    def __init__(self, columns: tuple[str, ...], decoding: Decoding) -> None:
        types = {**ARROW_TYPES, **decoding.arrow_types}
        fields = [pa.field(name, types[name]) for name in columns]
        self.schema = pa.schema([*fields, *([REASON] if decoding.has_reasons else [])])
        self._decoding = decoding

    def shape(self, batch: Any) -> Any:
        """Return the wanted columns of a client's record batch, decoded."""
        decoded = self._decoding.apply(batch)
        arrays = [
            SHAPES.get(name, pa.RecordBatch.column)(decoded, name) for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _timestamps(batch: Any, name: str) -> Any:
    return batch.column(name).cast(ARROW_TYPES[name])


def _timestamp_types(batch: Any, name: str) -> Any:
    return batch.column("timestamp_type").cast(ARROW_TYPES[name])


def _headers(batch: Any, name: str) -> Any:
    """Return headers with Spark's names for their parts, and null where there are none."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the driver's processes have no use for it

    lists = batch.column(name)
    are_there = pc.greater(pc.list_value_length(lists), 0)
    pairs = pa.StructArray.from_arrays(
        [lists.values.field(0), lists.values.field(1)], fields=list(ARROW_HEADER)
    )
    # Of a slice, the first of its places; the pairs are those of the whole.
    places = lists.buffers()[1].slice(lists.offset * PLACE_BYTES)
    buffers = [are_there.buffers()[1], places]
    return pa.Array.from_buffers(ARROW_TYPES[name], len(lists), buffers, children=[pairs])


SHAPES: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
"""The columns that the client has in another form."""
