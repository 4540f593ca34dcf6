"""Run by tests in a process of its own: Spark's own Kafka connector reads and writes topics.

Its jars must be there when the session starts. Says as JSON what it has read.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.pipelines.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

    found = {"batch": texts(read("read")), "transactions": texts(read("transactions"))}
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
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
