"""What Spark refuses, in one line that says the way out."""

from typing import Final

_WAYS_OUT: Final = {
    "possible 'correctness' issue due to global watermark": (
        "Spark does not put an operator with state behind this one; write the first one's result "
        "to a topic with app.to, and read that with app.stream"
    ),
    "Redefining watermark is disallowed": (
        "there are two watermarks one behind the other; a join with a table keeps that of the "
        "stream, so leave the second one out, or write to a topic between them"
    ),
    "not supported for streaming aggregations without watermark": (
        "without a watermark an aggregate never ends; give app.stream event_time and watermark and "
        'group by a window of that time, or use emit="changes"'
    ),
    "join between two streaming DataFrame/Datasets is not supported without a watermark": (
        "an outer join of two streams has to know when a row will find no other: give both "
        "event_time and watermark, and the join a bound, as in b.at BETWEEN a.at AND a.at + "
        "INTERVAL 1 HOUR"
    ),
    "STATE_STORE_MULTIPLE_COLUMN_FAMILIES": (
        "joins with tables keep their state in RocksDB, and this session does not; set "
        "spark.sql.streaming.stateStore.providerClass to org.apache.spark.sql.execution.streaming."
        "state.RocksDBStateStoreProvider"
    ),
}
"""Words of Spark 4.2 and 4.3, of which not all have a condition's name."""


def explain_refusal(error: Exception) -> str | None:
    """Return what to do about a query that Spark does not run, None if it is something else."""
    words = str(error)
    for symptom, way_out in _WAYS_OUT.items():
        if symptom in words:
            return way_out
    return None
