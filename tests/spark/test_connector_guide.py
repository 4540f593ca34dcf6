"""The guides' examples work as printed."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau import Consumer
from moldau.testing.broker import Broker
from tests.spark.queries import fill

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"


def run_blocks(name: str, broker: Broker, folder: Path) -> dict[str, Any]:
    """Run what a guide shows, one after the other; return the names that are there then.

    Checkpoints are in a folder: Spark's own is the one that its Java was started in.
    """
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL):
        here = block.replace("localhost:9092", broker.bootstrap_servers)
        exec(here.replace('"checkpoints/', f'"{folder}/'), names)
    return names


def test_reading(
    spark: "SparkSession", broker: Broker, tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    broker.create_topic("orders")
    fill(broker, "orders", ["an order"])
    names = run_blocks("connector.md", broker, tmp_path)
    assert "|NULL|an order|     0|" in re.sub(r"\|\s*NULL\|", "|NULL|", capsys.readouterr().out)
    assert names["query"].exception() is None


def test_writing(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    names = run_blocks("sink.md", broker, tmp_path)
    try:
        for topic in ("numbers", "counts"):
            with Consumer(
                broker.bootstrap_servers, group_id=f"reads-{topic}", auto_offset_reset="earliest"
            ) as consumer:
                consumer.subscribe(topic)
                assert consumer.poll(timeout_ms=120_000)
    finally:
        names["query"].stop()
        names["counting"].stop()
