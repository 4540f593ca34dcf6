"""The session that pipelines start: on what there is, quiet, and one per process."""

import sys
import time
import traceback
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.session import get_session
from moldau.testing.broker import Broker


def test_the_active_session_is_used(spark: SparkSession) -> None:
    # Tests before may have used a session of their own in this thread.
    spark.createDataFrame([], "nothing int")
    assert get_session("another") is spark
    assert get_session("another", "local[2]") is spark


def test_another_master_than_the_active_one_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match=r"master=local\[7\]: there is .* on local\[2\]; stop"):
        get_session("another", "local[7]")


def test_workers_are_forked_with_the_connector_imported(spark: SparkSession) -> None:
    def names(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        found = "moldau.pipelines.connector.sink.stream_writer" in sys.modules
        for batch in batches:
            yield pa.record_batch({"found": [found] * len(batch)})

    rows = spark.range(1).mapInArrow(names, "found boolean")
    assert [row.found for row in rows.collect()] == [True]


def test_an_error_is_said_once_by_the_exception(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("select 1 div (id - id) from range(3)").collect()
    assert capfd.readouterr().err == ""


def test_what_workers_print_is_not_shown_but_what_spark_logs(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    @F.udf("int")
    def loud(number):  # type: ignore[no-untyped-def] - PySpark makes something else of types
        warnings.warn("a warning of a worker", stacklevel=1)
        traceback.print_exception(ValueError("a trace of a worker"))
        return number

    assert [row[0] for row in spark.range(1).select(loud("id")).collect()] == [0]
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.err.println("spark: told")
    shown = ""
    deadline = time.monotonic() + 60
    while "told" not in shown:
        assert time.monotonic() < deadline, shown
        shown += capfd.readouterr().err
    assert shown == "spark: told\n"


def test_queries_that_start_at_once_do_not_break_what_they_share(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    get_session("another")
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    shared = manager.lookupDataSource("moldau").dataSourceCls().envVars()
    assert shared.getClass().getName() == "java.util.concurrent.ConcurrentHashMap"
    # It is the one that Spark writes to.
    shared.remove("SPARK_LOCAL_DIRS")
    broker.create_topic(topic, partitions=1)
    rows = spark.readStream.format("moldau").option("subscribe", topic)
    read = rows.option("kafka.bootstrap.servers", broker.bootstrap_servers).load()
    query = read.writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert "SPARK_LOCAL_DIRS" in shared
    get_session("another")
    again = manager.lookupDataSource("moldau").dataSourceCls().envVars()
    assert again.equals(shared)
