"""Aggregates as people write them, `sum(amount)`: what they take, keep and give."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.pipelines.errors import OptionError
from moldau.pipelines.streams.folds import Average, Count, Extreme, Fold, Sum
from moldau.pipelines.streams.tables import check_names
from moldau.pipelines.supervision.failures import failure_of

FUNCTIONS: Final = ("count", "sum", "avg", "mean", "min", "max")
_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_COMPARED: Final = (BinaryType, BooleanType, DateType, NumericType, StringType, TimestampType)
_DECIMAL_DIGITS_MAX: Final = 38


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result of an aggregate: its name, what it is computed from, and how."""

    name: str
    text: str
    """As it was written."""
    argument: Column
    """What it takes of each row, as a type that is the same in Python, whatever the zone is."""
    argument_type: DataType
    kept: tuple[DataType, ...]
    """The types of what is kept."""
    fold: Fold
    result_type: DataType
    """Spark's type of it."""

    @property
    def given(self) -> DataType:
        """The type in which Python gives the result."""
        if isinstance(self.fold, Average):
            return self.result_type
        return self.kept[0]

    def from_given(self, given: Column) -> Column:
        """Return the result as Spark has it."""
        match self.result_type:
            case DateType():
                return F.date_from_unix_date(given.cast("int"))
            case TimestampType():
                return F.timestamp_micros(given)
            case _:
                return given.cast(self.result_type)


def read_aggregate(
    rows: DataFrame, name: str, text: object, called: str | None = None
) -> Aggregate:
    """Read what is to be kept of rows; `OptionError` if that cannot be, with what it is called."""
    words = called or f"{name}={text}"
    call = _CALL.fullmatch(text) if isinstance(text, str) else None
    if call is None:
        raise OptionError(f'{words}: write a function of SQL and what it takes, "sum(amount)"')
    function = call[1].lower()
    if function not in FUNCTIONS:
        raise OptionError(f"{words}: {', '.join(FUNCTIONS)} are there")
    inner = "1" if function == "count" and call[2].strip() == "*" else call[2]
    try:
        found = rows.select(F.expr(inner)).schema[0].dataType
        result = rows.groupBy().agg(F.expr(call[0])).schema[0].dataType
    except PySparkException as error:
        raise OptionError(f"{words}: {failure_of(error).line}") from None
    return _aggregate(name, words, call[0], function, F.expr(inner), found, result)


def read_groups(rows: DataFrame, by: str | Sequence[str], results: Collection[str]) -> StructType:
    """Return the columns of rows that are grouped by, beside which there are these results."""
    keys = [by] if isinstance(by, str) else list(by)
    if not keys or not results:
        raise OptionError('aggregate: name what to group by and a result, as total="sum(amount)"')
    for name in keys:
        if name not in rows.columns:
            raise OptionError(f"by={name}: the rows have {', '.join(rows.columns)}")
    check_names("aggregate", keys, list(results))
    return StructType([StructField(name, rows.schema[name].dataType) for name in keys])


def describe_aggregates(found: Sequence[Aggregate], key: StructType) -> str:
    """Return what must stay the same for the state to be of use, in one line."""
    results = [f"{each.text}: {each.result_type.simpleString()}" for each in found]
    keys = [f"{each.name}: {each.dataType.simpleString()}" for each in key.fields]
    return " ".join(f"{', '.join(results)} by {', '.join(keys)}".split())


def _aggregate(
    name: str,
    words: str,
    text: str,
    function: str,
    argument: Column,
    found: DataType,
    result: DataType,
) -> Aggregate:
    taken: tuple[Column, DataType]
    kept: tuple[DataType, ...]
    fold: Fold
    match function:
        case "count":
            # Of what is not null, one value is as good as another.
            taken = F.when(argument.isNotNull(), F.lit(True)), BooleanType()  # noqa: FBT003
            kept, fold = (LongType(),), Count()
        case "min" | "max":
            if not isinstance(found, _COMPARED) or _has_collation(found):
                raise OptionError(f"{words}: it is {found.simpleString()}; cast it to what can be")
            taken = _compared(argument, found)
            kept, fold = (taken[1],), Extreme(is_max=function == "max")
        case _:
            if not isinstance(found, NumericType):
                raise OptionError(f"{words}: it is {found.simpleString()}, no number; cast it")
            total = _sum_type(found, is_mean=function != "sum")
            taken = argument.cast(total), total
            digits = total.precision - total.scale if isinstance(total, DecimalType) else None
            kept, fold = (total,), Sum(words, digits)
            if function != "sum":
                scale = result.scale if isinstance(result, DecimalType) else None
                kept, fold = (total, LongType()), Average(fold, scale)
    return Aggregate(name, text, *taken, kept, fold, result)


def _has_collation(found: DataType) -> bool:
    return isinstance(found, StringType) and found != StringType()


def _sum_type(found: NumericType, *, is_mean: bool) -> DataType:
    """Return the type of a sum: that of Spark's own."""
    if isinstance(found, DecimalType):
        return DecimalType(min(_DECIMAL_DIGITS_MAX, found.precision + 10), found.scale)
    return DoubleType() if is_mean or isinstance(found, FractionalType) else LongType()


def _compared(argument: Column, found: DataType) -> tuple[Column, DataType]:
    """Return a column whose values Python compares as Spark compares these."""
    match found:
        case IntegralType():
            return argument.cast("bigint"), LongType()
        case FloatType():
            return argument.cast("double"), DoubleType()
        case DateType():
            return F.unix_date(argument).cast("bigint"), LongType()
        case TimestampType():
            return F.unix_micros(argument), LongType()
        case _:
            return argument, found
