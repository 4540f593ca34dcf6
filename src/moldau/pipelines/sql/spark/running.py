"""Text for Spark, with DataFrames as its tables."""

import re
from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from moldau.pipelines.decoding.batches import IS_DECODE_ERROR, DecodeError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.texts import as_template
from moldau.pipelines.streams.refusals import explain_refusal
from moldau.pipelines.supervision.failures import failure_of

_PLACE: Final = re.compile(r"; line \d+ pos \d+;?.*$")
_VIEW: Final = re.compile(r"`?(?:spark_catalog`?\.`?default`?\.`?)?_pyspark_[0-9a-f]{32}`?\.?")
_HIDDEN: Final = re.compile(r"(?:`\w+`\.)?`__moldau_\w+`(?:, )?")

_UNRESOLVED: Final = ("[UNRESOLVED_COLUMN", "[FIELD_NOT_FOUND]")


class UnresolvedError(PipelineError):
    """A column, or a field of one, that Spark does not find."""


def run_sql(spark: SparkSession, text: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """Return what a SELECT gives; what Spark does not take is one line."""
    try:
        return spark.sql(as_template(text, list(views)), None, **views)
    except PySparkException as error:
        raise refusal(error) from error


def refusal(error: Exception) -> PipelineError:
    """Return what Spark refuses, in one line, without the names that were made up for it."""
    line = explain_refusal(error) or failure_of(error).line
    kind: type[PipelineError] = PipelineError
    if str(error).startswith(_UNRESOLVED):
        kind = UnresolvedError
    elif IS_DECODE_ERROR.match(line):
        kind = DecodeError
    return kind(_HIDDEN.sub("", _VIEW.sub("", _PLACE.sub("", line))).strip())
