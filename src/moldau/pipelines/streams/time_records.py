"""Records that only say what time it is: tests move watermarks with them, and nothing else."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.streams.run_options import RunOptions

TIME_HEADER: Final = "moldau.time"
"""The header that such a record has."""
_HEADERS: Final = "headers"


def time_columns(columns: Sequence[str], run: RunOptions) -> tuple[str, ...]:
    """Return which columns of records are needed, beside these, to tell them from others."""
    return (_HEADERS,) if run.is_test and _HEADERS not in columns else ()


def without_time_records(
    rows: DataFrame, event_time: str | None, columns: Sequence[str]
) -> DataFrame:
    """Return rows, with these columns of records, without those that only tell the time.

    They have passed the watermark by then. The optimizer would have them dropped before it, but
    for a condition that looks at the column of the time; and it would have the app's own filters
    drop them there, for which they have no values, but for a condition that may change its mind.
    """
    header = f"_{_HEADERS}"
    is_time = F.exists(header, lambda each: each["key"] == TIME_HEADER)
    is_row = ~F.coalesce(is_time, F.lit(False))  # noqa: FBT003
    if event_time is not None:
        is_row = (is_row | F.col(event_time).isNull()) & (F.spark_partition_id() >= 0)
    kept = rows.filter(is_row)
    return kept if _HEADERS in columns else kept.drop(header)
