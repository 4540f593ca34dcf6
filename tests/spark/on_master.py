"""Run by tests in a process of its own: read and write a topic on a master, say what was found.

An app that keeps state is run there as well.

The format is not registered: Spark finds it where the package is installed.
"""

import json
import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark import __version__
from pyspark.sql import SparkSession

from moldau.pipelines import App
from moldau.pipelines.decoding.decode_counts import read_decode_counts
from moldau.pipelines.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_app(servers: str, topic: str, checkpoints: str) -> int:
    """Count a topic's records by the first letter of their values.

    Return how many a query has left out that takes them for JSON.
    """
    app = App("on-master", servers, checkpoints=checkpoints)
    letters = app.stream(topic, format="string").selectExpr("substr(value, 1, 1) AS letter")
    app.to(
        app.aggregate(letters, "letter", ttl="1 day", n="count(*)"), f"{topic}-app", key="letter"
    )
    app.to(app.stream(topic, "n int", on_error="skip"), f"{topic}-json")
    left_out = 0
    for query in app.start(once=True):
        query.awaitTermination()
        for batch in query.recentProgress:
            left_out += read_decode_counts(json.loads(batch.json)).skipped
    app.stop()
    return left_out


def main(master: str, servers: str, topic: str, directory: str) -> None:
    if master.startswith("connect:"):
        # A server of Spark Connect in this process: what a notebook on one brings along.
        SparkSession.builder.remote(master.removeprefix("connect:")).getOrCreate()
        session = get_session("on-master")
        session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    else:
        # Executors start as quickly as this driver does.
        quick = {"spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"]}
        session = get_session("on-master", master, quick)
    where = {"kafka.bootstrap.servers": servers}

    def louder(rows: "DataFrame") -> "DataFrame":
        return rows.selectExpr("key", "upper(cast(value as string)) value")

    batch = session.read.format("moldau").options(**where, subscribe=topic).load()
    rows = batch.selectExpr("cast(value as string) value").collect()
    louder(batch).write.format("moldau").options(**where, topic=f"{topic}-batch").mode(
        "append"
    ).save()
    stream = session.readStream.format("moldau").options(**where, subscribe=topic)
    query = (
        louder(stream.option("startingOffsets", "earliest").load())
        .writeStream.format("moldau")
        .options(**where, topic=f"{topic}-stream", checkpointLocation=directory)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    # Spark's default is 200, and each of them has state of its own.
    session.conf.set("spark.sql.shuffle.partitions", "2")
    left_out = run_app(servers, topic, f"file://{directory}-app")
    session.stop()
    found = {
        "session": type(session).__module__,
        "version": __version__,
        "rows": sorted(row.value for row in rows),
        "left_out": left_out,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
