"""Our connector beside Spark's own in one session, and windows beside Kafka Streams.

All talk to one broker of ours, on the same cores, in turns; the first round is thrown away.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.broker_load import Programs, Side
from bench.comparison import PAGE_CACHE
from bench.row import Row
from bench.spark_rows import RECORDS
from bench.spark_sink import sink
from bench.spark_source import source
from bench.spark_windows import windows
from moldau.pipelines.session import get_session
from tests.conformance.brokers import run_moldau
from tools.peers import spark_connector

PARTS: dict[str, Callable[..., Iterator[Row]]] = {
    "source": source,
    "sink": sink,
    "windows": windows,
}


def rows(only: str = "", records: int = RECORDS) -> Iterator[Row]:
    """Measure everything, or one of the parts."""
    if only and only not in PARTS:
        raise SystemExit(f"bench: spark has no {only}; there are {', '.join(PARTS)}")
    spark = get_session("bench", configs={"spark.jars": spark_connector()})
    with tempfile.TemporaryDirectory(dir=".") as name:
        directory = Path(name).resolve()
        with run_moldau(directory / "broker", PAGE_CACHE) as broker:
            side = Side(broker, Programs(directory))
            for part, measure in PARTS.items():
                if only in ("", part):
                    yield from measure(spark, side, directory, records)
    spark.stop()
