"""A SELECT that ends: topics as batches, and Spark's own SQL over them."""

from pyspark.sql import DataFrame, SparkSession

from moldau.pipelines.sql.language.queries import SelectQuery
from moldau.pipelines.sql.spark.column_ddl import ddl_of
from moldau.pipelines.sql.spark.inputs import as_declared, stored_epoch, value_schema
from moldau.pipelines.sql.spark.running import run_sql
from moldau.pipelines.sql.spark.sides import (
    Find,
    Side,
    ViewNames,
    find_sides,
    record_columns,
)
from moldau.pipelines.sql.spark.topic_places import ending_options
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.run_options import RunOptions
from moldau.pipelines.streams.sources import ClusterOptions, check_format, load_rows, read_key
from moldau.pipelines.streams.tables import TopicTable


def plan_bounded(
    spark: SparkSession, cluster: ClusterOptions, query: SelectQuery, find: Find
) -> DataFrame:
    """Return what a SELECT without EMIT gives, as a batch that has not run yet."""
    sides = find_sides(query, find)
    views = {side.view: _open(spark, cluster, side) for side in sides}
    return run_sql(spark, query.render(ViewNames(sides)), views)


def _open(spark: SparkSession, cluster: ClusterOptions, side: Side) -> DataFrame:
    relation = side.relation
    key_format, key_schema = read_key(ddl_of(relation.keys) or None)
    source = Source(
        relation.topic,
        relation.format,
        value_schema(relation),
        key_format,
        key_schema,
        relation.on_error,
        "earliest",
        ending_options(cluster, relation, side.use.as_of),
        stored_epoch(relation),
    )
    check_format(source)
    metadata = record_columns(side.hidden)
    if side.is_table:
        rows = TopicTable(spark, cluster, source, metadata).snapshot()
    else:
        rows = load_rows(spark, cluster, source, RunOptions(), metadata, is_batch=True)
    return as_declared(rows, relation, side.hidden)
