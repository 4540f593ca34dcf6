"""The guide's examples work as written."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau import Producer
from moldau.testing.broker import Broker
from tests.spark.apps import lag, order, send, values
from tests.spark.reading import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_example(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path("docs/streams.md").read_text()
    example, forgetting = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with Broker() as broker:
        for name in ("orders", "users"):
            broker.create_topic(name, partitions=2)
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(
                "users", json.dumps({"name": "Ann", "city": "Prague"}).encode(), key=b"ann"
            )
        send(
            broker, "orders", [order(1, "ann", 1, 2.5), order(2, "bob", 2, 4), order(3, "ann", 90)]
        )

        def run() -> None:
            names: dict[str, object] = {"__name__": "orders"}
            exec(example.replace("localhost:9092", broker.bootstrap_servers), names)
            exec(forgetting, names)
            names["app"].run(once=True)  # type: ignore[attr-defined]

        run()
        enriched = {each["id"]: each for each in values(broker, "orders-enriched")}
        assert {key: each["city"] for key, each in enriched.items()} == {
            "o1": "Prague",
            "o2": None,
            "o3": "Prague",
        }
        assert enriched["o1"]["at"] == "2026-01-01T00:00:01.000000Z"
        totals = {record.key: record.value for record in read(broker.bootstrap_servers, "totals")}
        window = '{"start":"2026-01-01T00:00:00.000000Z","end":"2026-01-01T00:01:00.000000Z"}'
        assert totals == {
            f'{{"user":"{user}","window":{window}}}'.encode(): (
                f'{{"user":"{user}","window":{window},"total":{total}}}'.encode()
            )
            for user, total in (("ann", 2.5), ("bob", 4.0))
        }
        # Later the table has another row, and what comes then sees it.
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("users", json.dumps({"name": "Bob", "city": "Brno"}).encode(), key=b"bob")
        send(broker, "orders", [order(4, "bob", 95)])
        run()
        assert {each["id"]: each["city"] for each in values(broker, "orders-enriched")}[
            "o4"
        ] == "Brno"
        assert {each["user"]: each for each in values(broker, "spent")} == {
            "ann": {"user": "ann", "total": 3.5, "orders": 2},
            "bob": {"user": "bob", "total": 5.0, "orders": 2},
        }
        for query, topic in (
            ("orders-enriched", "orders"),
            ("orders-enriched", "users"),
            ("totals", "orders"),
        ):
            assert lag(broker, f"moldau-shop:{query}", topic) == 0
