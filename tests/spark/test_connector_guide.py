"""The guide's examples work as printed."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.testing.broker import Broker
from tests.spark.queries import fill

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_the_guide(
    spark: "SparkSession", broker: Broker, capsys: "pytest.CaptureFixture[str]"
) -> None:
    broker.create_topic("orders")
    fill(broker, "orders", ["an order"])
    guide = Path("docs/connector.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(block.replace("localhost:9092", broker.bootstrap_servers), names)
    assert "|NULL|an order|     0|" in re.sub(r"\|\s*NULL\|", "|NULL|", capsys.readouterr().out)
    assert names["query"].exception() is None  # type: ignore[attr-defined]
