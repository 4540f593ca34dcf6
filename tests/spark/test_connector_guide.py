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


def run_blocks(name: str, broker: Broker) -> dict[str, Any]:
    """Run what a guide shows, one after the other; return the names that are there then."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL):
        exec(block.replace("localhost:9092", broker.bootstrap_servers), names)
    return names


def test_reading(
    spark: "SparkSession", broker: Broker, capsys: "pytest.CaptureFixture[str]"
) -> None:
    broker.create_topic("orders")
    fill(broker, "orders", ["an order"])
    names = run_blocks("connector.md", broker)
    assert "|NULL|an order|     0|" in re.sub(r"\|\s*NULL\|", "|NULL|", capsys.readouterr().out)
    assert names["query"].exception() is None


def test_writing(
    spark: "SparkSession", broker: Broker, tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks("sink.md", broker)
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
