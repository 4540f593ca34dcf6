"""Starts a query: its topic is created, its checkpoint looked at, its sink chosen."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.pipelines.connector.opening import open_client
from moldau.pipelines.connector.sink.settings import load_sink_settings
from moldau.pipelines.connector.sink.spark_task import types_of
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.foreach_batch import writer
from moldau.pipelines.streams.checkpoints import Checkpoints
from moldau.pipelines.streams.declared import Query
from moldau.pipelines.streams.idle_batches import idle_batches_of
from moldau.pipelines.streams.refusals import explain_refusal
from moldau.pipelines.streams.sources import ClusterOptions
from moldau.pipelines.streams.waves import in_waves
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COMPACTED: Final = {"cleanup.policy": "compact"}


def check_brokers(client_config: Mapping[str, str]) -> None:
    """Raise what is wrong with the cluster's address, or with the client's settings."""
    open_client(Admin, config=dict(client_config)).close()


def create_topics(client_config: Mapping[str, str], queries: Iterable[Query]) -> None:
    """Create the topics that these queries write to, where they are missing."""
    wanted = list(queries)
    with Admin(config=dict(client_config)) as admin:
        inputs = {source.topic for query in wanted for source in query.sources}
        outputs = {query.topic for query in wanted}
        counts = _partition_counts(admin, inputs | outputs)
        # A topic that one query writes and another reads has partitions before the other's has.
        for query in chain.from_iterable(in_waves(wanted)):
            if query.topic in counts:
                continue
            read = [counts[each.topic] for each in query.sources if each.topic in counts]
            configs = COMPACTED if query.emit == "changes" else {}
            partitions = query.partitions or max(read, default=None)
            counts[query.topic] = _create(admin, query.topic, partitions, configs)


def _partition_counts(admin: Admin, topics: set[str]) -> dict[str, int]:
    """Return how many partitions these topics have; those that are missing are left out."""
    counts = {}
    for name, found in admin.describe_topics(sorted(topics)).items():
        if not isinstance(found, KafkaError):
            counts[name] = len(found.partitions)
        elif found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise found
    return counts


def _create(admin: Admin, topic: str, partitions: int | None, configs: Mapping[str, str]) -> int:
    try:
        return admin.create_topic(topic, partitions, configs=configs).partition_count
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        # Somebody else was quicker.
        return _partition_counts(admin, {topic})[topic]


def check_place(spark: "SparkSession", checkpoints: Checkpoints) -> None:
    """Refuse to keep checkpoints where a cluster's machines do not see them."""
    master = spark.conf.get("spark.master", None) or "local"
    if not master.startswith("local") and not checkpoints.is_uri:
        raise PipelineError(
            f"checkpoints={checkpoints.base}: master {master} runs on other machines; give a URI "
            "that all of them see, such as hdfs://host/path or file:///shared/path"
        )


def start_stream(
    query: Query, cluster: ClusterOptions, checkpoints: Checkpoints, *, once: bool
) -> "StreamingQuery":
    """Have Spark run a query: until it has read what is there, or until it is stopped."""
    options = {**cluster.options, "topic": query.topic}
    # As for sources: what is wrong with an option is better said here than by a task.
    load_sink_settings(options, types_of(query.rows.schema))
    stream = query.rows.writeStream.outputMode(query.mode).queryName(query.name)
    if query.mode == "append":
        stream = stream.format("moldau").options(**options)
    else:
        stream = stream.foreachBatch(writer(options=options))
    stream = stream.option("checkpointLocation", checkpoints.of(query.name))
    if once:
        stream = stream.trigger(availableNow=True)
    is_new = checkpoints.claim(query)
    try:
        with idle_batches_of(query.rows.sparkSession, query.plan, once=once):
            return stream.start()
    except PySparkException as error:
        if is_new:
            checkpoints.release(query.name)
        words = explain_refusal(error)
        if words is None:
            raise
        raise PipelineError(f"query {query.name}: {words}") from error
