"""Numbers since 1970 and timestamps, as columns of Spark."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.decoding.epochs import bounds


def epoch_time(number: Column, unit: str) -> Column:
    """Return a number since 1970 as a timestamp; null where it is none."""
    match unit:
        case "s":
            time = F.timestamp_seconds(number)
        case "ms":
            time = F.timestamp_millis(number)
        case "us":
            time = F.timestamp_micros(number)
        case _:
            # Towards the past, as every other engine; `div` goes towards 1970.
            cut = F.call_function("div", number, F.lit(1000))
            time = F.timestamp_micros(F.when(cut * 1000 > number, cut - 1).otherwise(cut))
    return F.when(number.between(*bounds(unit)), time)


def epoch_number(time: Column, unit: str) -> Column:
    """Return a timestamp as a number since 1970."""
    match unit:
        case "s":
            return F.unix_seconds(time)
        case "ms":
            return F.unix_millis(time)
        case "us":
            return F.unix_micros(time)
        case _:
            return F.unix_micros(time) * 1000
