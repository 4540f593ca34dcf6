"""Run by tests in a process of its own: say as JSON what a session on a master finds."""

import json
import sys
from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import udf
from pyspark.sql.types import StructType

from moldau.pipelines.session import get_session


class Numbers(DataSource):
    """The numbers from 0 to 3, each in a partition of its own."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return NumberReader()


class NumberReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(4)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)


def main(master: str) -> None:
    if master.startswith("connect:"):
        # A server of Spark Connect in this process: what a notebook on one brings along.
        SparkSession.builder.remote(master.removeprefix("connect:")).getOrCreate()
        session = get_session("on-master")
    else:
        session = get_session("on-master", master)
    found: dict[str, object] = {"session": type(session).__module__}
    session.dataSource.register(Numbers)
    doubled = udf(lambda number: 2 * number, "int")
    rows = session.read.format("numbers").load().select(doubled("number").alias("n")).collect()
    found["rows"] = sorted(row.n for row in rows)
    try:
        session.read.format("moldau").load().collect()
    except PySparkException as error:
        found["is_ours"] = "moldau/pipelines/connector" in str(error)
    session.stop()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
