"""The guides about tests, from Kafka Streams and from the jar connector work as printed."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau import Producer
from moldau.testing import Broker, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytest_plugins = ["pytester"]

DOCS = Path(__file__).parents[2] / "docs"


def blocks(name: str, language: str = "python") -> list[str]:
    text = (DOCS / name).read_text()
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found


def test_tests_of_pipelines(pytester: pytest.Pytester) -> None:
    """In a run of its own, with the plugin's own session."""
    names = ("orders", "orders_test", "adults_test", "shop_test")
    for name, source in zip(names, sources(), strict=True):
        pytester.makepyfile(**{name: source})
    (shop,) = blocks("testing-pipelines.md", "sql")
    pytester.makefile(".sql", shop=shop)
    pytester.runpytest_subprocess(
        "-W", "error", "adults_test.py", "orders_test.py", "shop_test.py"
    ).assert_outcomes(passed=3)


def sources() -> list[str]:
    return [*blocks("streams.md")[:1], *blocks("testing-pipelines.md")]


def test_from_kafka_streams(pipeline: "Callable[..., Pipeline]", tmp_path: Path) -> None:
    (example,) = blocks("from-kafka-streams.md")
    file = tmp_path / "words.py"
    file.write_text(example)
    with pipeline(file) as t, Producer(t.broker.bootstrap_servers) as producer:
        for text, second in ((b"to be or not to be", 1), (b"that is the question", 90)):
            producer.send("lines", text, timestamp_ms=second * 1000).result()
        t.run()
        assert {row["word"]: row["count"] for row in t.rows("counts")} == {
            "to": 2,
            "be": 2,
            "or": 1,
            "not": 1,
        }


def test_from_the_jar_connector(spark: "SparkSession", broker: Broker) -> None:
    (example,) = blocks("from-the-jar-connector.md")
    names: dict[str, object] = {}
    exec(example.replace("localhost:9092", broker.bootstrap_servers), names)
    assert names["rows"].columns[:3] == ["key", "value", "topic"]  # type: ignore[attr-defined]
