"""The query that writes what does not decode to a topic: one per app, over all its sources."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.streams.dead_letter_headers import (
    OFFSET,
    PARTITION,
    REASON,
    TOPIC,
    dead_letters_topic,
)
from moldau.pipelines.streams.declared import Query, Source
from moldau.pipelines.streams.outputs import explain
from moldau.pipelines.streams.run_options import RunOptions
from moldau.pipelines.streams.sources import ClusterOptions, load_undecodable


def find_dead_letter_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources whose undecodable records are kept; two that are equal are one."""
    kept = [source for source in sources if source.on_error == "dead-letter"]
    return tuple(source for place, source in enumerate(kept) if source not in kept[:place])


def make_dead_letter_query(
    app_name: str, spark: SparkSession, cluster: ClusterOptions, sources: tuple[Source, ...]
) -> Query:
    """Return the query for these sources: a query has one sink, so it is one of its own."""
    letters = [
        _as_letters(load_undecodable(spark, cluster, source, RunOptions())) for source in sources
    ]
    rows = reduce(DataFrame.unionByName, letters)
    name = dead_letters_topic(app_name)
    return Query(name, rows, name, "final", "append", explain(rows), sources)


def _as_letters(records: DataFrame) -> DataFrame:
    added = [
        _header(TOPIC, "topic"),
        _header(PARTITION, "partition"),
        _header(OFFSET, "offset"),
        _header(REASON, "reason"),
    ]
    had = F.coalesce("headers", F.array().cast(records.schema["headers"].dataType))
    return records.select("key", "value", F.concat(had, F.array(*added)).alias("headers"))


def _header(name: str, column: str) -> Column:
    return F.struct(
        F.lit(name).alias("key"), F.col(column).cast("string").cast("binary").alias("value")
    )
