"""Spark's types for what decoders give."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from moldau.pipelines.decoding.batches import REASON
from moldau.pipelines.decoding.decoding_options import Decoding


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the Spark type whose Arrow type is `arrow_type`."""
    return from_arrow_type(arrow_type)


def decoded_schema(source: StructType, decoding: Decoding) -> StructType:
    """Return the columns of a source whose keys and values are decoded."""
    if decoding.on_error in {"only", "mark"}:
        return StructType([*source.fields, StructField(REASON.name, StringType())])
    decoders = {"key": decoding.key, "value": decoding.value}
    return StructType(
        [
            StructField(field.name, spark_type(decoder.arrow_type))
            if (decoder := decoders.get(field.name))
            else field
            for field in source.fields
        ]
    )
