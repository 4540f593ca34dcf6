"""Headers of the records that a query writes, from columns of its rows."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, NullType, StringType

from moldau.pipelines.errors import OptionError
from moldau.pipelines.streams.tables import column
from moldau.pipelines.supervision.failures import failure_of

HeaderColumns: TypeAlias = Mapping[str, str | Column]
"""What each header is: a column by its name, or an expression of columns."""

HEADERS: Final = "headers"
"""What the sink calls their column."""


def header_column(rows: DataFrame, headers: HeaderColumns) -> Column:
    """Return the sink's column of headers, in this order; an error names one that cannot be."""
    pairs = []
    for name, given in headers.items():
        value = _checked(rows, name, given).cast("binary")
        pairs.append(F.struct(F.lit(name).alias("key"), value.alias("value")))
    return F.array(*pairs).alias(HEADERS)


def _checked(rows: DataFrame, name: str, given: str | Column) -> Column:
    if isinstance(given, str) and given not in rows.columns:
        raise OptionError(
            f"headers: {name}={given}: the rows have {', '.join(rows.columns)}; a text that is the "
            f'same for all is F.lit("{given}")'
        )
    value = column(given) if isinstance(given, str) else given
    try:
        # Beside the columns themselves: what makes one row of many is no header of each.
        kind = rows.select(*map(column, rows.columns), value).schema.fields[-1].dataType
    except PySparkException as error:
        raise OptionError(f"headers: {name}: {failure_of(error).line}") from None
    if not isinstance(kind, StringType | BinaryType | NullType):
        raise OptionError(
            f"headers: {name} is {kind.simpleString()}, and a header is text or bytes: cast it, "
            f'as in F.col("{given if isinstance(given, str) else name}").cast("string")'
        )
    return value
