"""Spark's types for what decoders give."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the Spark type whose Arrow type is `arrow_type`."""
    return from_arrow_type(arrow_type)
