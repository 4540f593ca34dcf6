"""Run by tests in a process of its own: Spark's own Kafka connector reads and writes topics.

Its jars must be there when the session starts. Says as JSON what it has read.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.pipelines.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "partition",
    "offset",
    "cast(key as string) key",
    "cast(value as string) value",
    "unix_millis(timestamp) timestamp",
    "transform(headers, h -> concat(h.key, '=', cast(h.value as string))) headers",
)


def texts(rows: "DataFrame") -> list[list[object]]:
    """Return what was read, in the order of the log."""
    found = rows.selectExpr(*COLUMNS).sort("partition", "offset").collect()
    return [list(row) for row in found]


def move(session: "SparkSession", where: dict[str, str], checkpoint: str) -> list[str]:
    """Copy a topic that grows by queries of the jar, of ours, and of the jar, with one checkpoint.

    Return the values of the copy.
    """
    for part, form in enumerate(("kafka", "moldau", "kafka")):
        numbers = session.range(10 * part, 10 * part + 10).selectExpr("cast(id as string) value")
        numbers.write.format(form).options(**where, topic="moving").mode("append").save()
        rows = session.readStream.format(form).options(**where, subscribe="moving")
        query = (
            rows.option("startingOffsets", "earliest")
            .load()
            .select("key", "value")
            .writeStream.format(form)
            .options(**where, topic="moved", checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    copy = session.read.format("moldau").options(**where, subscribe="moved").load()
    return [bytes(row.value).decode() for row in copy.collect()]


def main(jars: str, servers: str, directory: str) -> None:
    session = get_session("jar-connector", "local[2]", {"spark.jars": jars})
    where = {"kafka.bootstrap.servers": servers}
    reading = where | {
        "includeHeaders": "true",
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }

    def read(topic: str) -> "DataFrame":
        return session.read.format("kafka").options(**reading, subscribe=topic).load()

    def stream(topic: str) -> "DataFrame":
        return session.readStream.format("kafka").options(**reading, subscribe=topic).load()

    found: dict[str, object] = {
        "batch": texts(read("read")),
        "transactions": texts(read("transactions")),
    }
    to_files = stream("read").writeStream.format("parquet")
    # The second start goes on where the first has come to.
    for _ in range(2):
        query = (
            to_files.option("path", str(Path(directory, "out")))
            .option("checkpointLocation", str(Path(directory, "read")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found["stream"] = texts(session.read.parquet(str(Path(directory, "out"))))

    read("read").write.format("kafka").options(**where, topic="written").save()
    query = (
        stream("read")
        .writeStream.format("kafka")
        .options(**where, topic="streamed", checkpointLocation=str(Path(directory, "written")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found["moved"] = move(session, where, str(Path(directory, "moving")))
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
