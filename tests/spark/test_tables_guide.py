"""The guide's example about tables works as printed."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.testing.broker import Broker
from tests.spark.apps import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_guide(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    examples = re.findall(
        r"```python\n(.*?)```", Path("docs/tables-and-joins.md").read_text(), re.DOTALL
    )
    example = "\n".join(examples)
    monkeypatch.chdir(tmp_path)
    with Broker() as broker:
        exec(example.replace("localhost:9092", broker.bootstrap_servers), {})
        printed = capsys.readouterr().out
        assert "| ann| Ann|Brno|" in printed
        assert "{'name': 'Ann', 'city': 'Brno'}" in printed
        enriched = {each["id"]: each["name"] for each in values(broker, "orders-enriched")}
        assert enriched == {"1": "Ann", "2": None}
        assert values(broker, "by-city") == [{"people": 1, "first": "Ann"}]
