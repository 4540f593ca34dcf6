"""Spark's types for what decoders give, and Spark's words where there is none."""

import re
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType

_NAMES: Final = re.compile(r"^\[[A-Z_.]+\] |\s*SQLSTATE: \w+")


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the Spark type whose Arrow type is `arrow_type`."""
    return from_arrow_type(arrow_type)


def words_of(error: PySparkException) -> str:
    """Return what Spark says first, without its names for it; below that it repeats the text."""
    return _NAMES.sub("", str(error).strip().partition("\n")[0]).strip()
