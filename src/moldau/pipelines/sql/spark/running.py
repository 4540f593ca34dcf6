"""Text for Spark, with DataFrames as its tables."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from moldau.pipelines.decoding.batches import IS_DECODE_ERROR, DecodeError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.function_names import no_function
from moldau.pipelines.sql.language.names import no_column, no_field
from moldau.pipelines.sql.spark.sides import HIDDEN, RECORD_COLUMNS
from moldau.pipelines.sql.spark.texts import as_template
from moldau.pipelines.streams.refusals import explain_refusal
from moldau.pipelines.supervision.failures import failure_of

_PLACE: Final = re.compile(r"; line \d+ pos \d+;?.*$")
_VIEW: Final = re.compile(r"`?(?:spark_catalog`?\.`?default`?\.`?)?_pyspark_[0-9a-f]{32}`?\.?")
_HIDDEN: Final = re.compile(r"(?:`\w+`\.)?`__moldau_\w+`(?:, )?")

_UNRESOLVED: Final = ("[UNRESOLVED_COLUMN", "[FIELD_NOT_FOUND]")
_NO_COLUMN: Final = re.compile(
    r"\[UNRESOLVED_COLUMN\.WITH_SUGGESTION\] A column, .*? with name (?P<name>`.+?`) cannot be "
    r"resolved\. Did you mean one of the following\? \[(?P<close>.*?)\]\."
)
_NO_FIELD: Final = re.compile(
    r"\[FIELD_NOT_FOUND\] No such struct field (?P<name>`.+?`) in (?P<close>.*?)\. SQLSTATE"
)
_NO_FUNCTION: Final = re.compile(
    r"\[UNRESOLVED_ROUTINE\] Cannot resolve routine (?P<name>`.+?`) on search path"
)
"""What Spark 4 says of what it does not find; another Spark's words stay as they are."""


class UnresolvedError(PipelineError):
    """A column, or a field of one, that Spark does not find."""


def run_sql(spark: SparkSession, text: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """Return what a SELECT gives; what Spark does not take is one line."""
    try:
        return spark.sql(as_template(text, list(views)), None, **views)
    except PySparkException as error:
        raise refusal(error, _columns(views)) from error


def _columns(views: Mapping[str, DataFrame]) -> list[str]:
    """Return the columns that a user knows; of a join, each side is a struct."""
    fields = [each for view in views.values() for each in view.schema.fields]
    sides = [each.dataType for each in fields if each.name.startswith(HIDDEN)]
    names = [name for side in sides if isinstance(side, StructType) for name in side.names]
    names += [each.name for each in fields if not each.name.startswith(HIDDEN)]
    return [name for name in dict.fromkeys(names) if name not in RECORD_COLUMNS]


def _unresolved(said: str, columns: Sequence[str]) -> PipelineError | None:
    """Return what is not there, in the words that every engine has for it."""
    if match := _NO_COLUMN.match(said):
        close = (each.replace("`", "").rpartition(".")[2] for each in match["close"].split(", "))
        seen = [
            each for each in close if each not in RECORD_COLUMNS and not each.startswith(HIDDEN)
        ]
        # Spark names some of the columns that there are: all of a query in brackets, at most.
        known = columns if set(seen) <= set(columns) else seen
        return UnresolvedError(no_column(match["name"].replace("`", ""), known))
    if match := _NO_FIELD.match(said):
        known = match["close"].replace("`", "").split(", ")
        return UnresolvedError(no_field(match["name"].replace("`", ""), known))
    if match := _NO_FUNCTION.match(said):
        return PipelineError(no_function(match["name"].replace("`", "").rpartition(".")[2]))
    return None


def refusal(error: Exception, columns: Sequence[str] = ()) -> PipelineError:
    """Return what Spark refuses, in one line, without the names that were made up for it."""
    if (unresolved := _unresolved(str(error), columns)) is not None:
        return unresolved
    line = explain_refusal(error) or failure_of(error).line
    kind: type[PipelineError] = PipelineError
    if str(error).startswith(_UNRESOLVED):
        kind = UnresolvedError
    elif IS_DECODE_ERROR.match(line):
        kind = DecodeError
    return kind(_HIDDEN.sub("", _VIEW.sub("", _PLACE.sub("", line))).strip())
