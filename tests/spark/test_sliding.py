"""Sliding windows in an app: those of Kafka Streams, each when it is over."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines import App, OptionError
from moldau.pipelines.streams.sliding import aggregate_sliding
from moldau.pipelines.streams.sliding_windows import TimedRow
from moldau.testing import Pipeline
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps
from tests.spark.tables import World, put
from tests.unit.pipelines.streams.test_sliding_windows import all_windows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def at(ms: int) -> str:
    return f"2026-01-01T00:00:{ms // 1000:02}.{ms % 1000:03}Z"


def paid(user: str, ms: int, amount: float | None = 1.0) -> dict[str, Any]:
    return {"user": user, "amount": amount, "at": at(ms)}


def test_windows_slide_from_row_to_row(pipeline: Callable[..., Pipeline]) -> None:
    def make() -> App:
        app = App("shop")
        orders = app.stream(
            "orders",
            "user string, amount double, at timestamp",
            event_time="at",
            watermark="2 seconds",
        )
        sums = app.aggregate(
            orders, "user", sliding="5 seconds", n="count(*)", total="sum(amount)", last="max(at)"
        )
        query = app.to(sums, "sums", key=["user", "window"])
        assert (query.emit, query.mode) == ("final", "append")
        return app

    with pipeline(make) as t:
        # The example of Kafka Streams' documentation, out of order and over a restart.
        t.send("orders", [paid("ann", 9200, 2), paid("ann", 8000, 0.5), paid("bob", 9000, None)])
        t.run()
        t.restart()
        t.send("orders", [paid("ann", 12400, 4)])
        t.run()
        # Late by now, and left out.
        t.send("orders", [paid("ann", 9000, 100)])
        t.advance("at", "1 minute")
        t.run()
        found = {
            (row["user"], row["window"]["start"][17:23]): (
                row["n"],
                row["total"],
                row["last"][17:23],
            )
            for row in t.rows("sums")
        }
        assert len(found) == len(t.rows("sums"))
        assert found == {
            ("ann", "03.000"): (1, 0.5, "08.000"),
            ("ann", "04.200"): (2, 2.5, "09.200"),
            ("ann", "07.400"): (3, 6.5, "12.400"),
            ("ann", "08.001"): (2, 6.0, "12.400"),
            ("ann", "09.201"): (1, 4.0, "12.400"),
            ("bob", "04.000"): (1, None, "09.000"),
        }
        ends = {row["window"]["start"]: row["window"]["end"] for row in t.rows("sums")}
        assert ends["2026-01-01T00:00:03.000000Z"] == "2026-01-01T00:00:08.000000Z"


def test_windows_are_those_of_a_computation_at_once(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    world = World(spark, broker, topic, tmp_path)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    name = world.topic("rows", 3)
    sent: dict[str, list[TimedRow]] = {"ann": [], "bob": []}
    found = []
    # Every run is a restart that goes on from the checkpoint; no row is later than ten seconds.
    for batch in range(4):
        for _ in range(chance.choice([1, 6, 12])):
            ms, amount = batch * 5000 + chance.randrange(0, 9500, 250), chance.randrange(100) / 4
            user = chance.choice(["ann", "bob"])
            sent[user].append(TimedRow(ms, str(amount)))
            put(broker, name, (None, paid(user, ms, amount)))
        if batch == 3:
            put(broker, name, (None, paid("end", 59_000)))
        rows = world.stream(name, "user string, amount double, at timestamp", at="at")
        results = {"n": "count(amount)", "total": "sum(amount)", "least": "min(amount)"}
        sliding = aggregate_sliding(rows, "user", "1500 ms", results)
        begin = F.col("window.start").cast("double").alias("start")
        found += world.run(sliding.select("user", begin, *results))
    expected = []
    for user, timed in sent.items():
        for start_ms, in_it in all_windows(timed, 1500):
            amounts = [float(text) for text in in_it]
            seconds = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + start_ms / 1000
            expected.append((user, seconds, len(amounts), sum(amounts), min(amounts)))
    assert sorted(found) == sorted(expected), f"seed {seed}"


def test_mistakes_are_one_line(apps: Apps) -> None:
    app = apps.make()
    timed = app.stream("orders", ORDERS, event_time="at", watermark="1 second")
    table = app.table("users", "user string", "name string")
    for rows, options, words in [
        (
            app.stream("orders", ORDERS),
            {"sliding": "5 s"},
            "give app.stream event_time and watermark",
        ),
        (timed, {"sliding": 0}, "sliding=0: a millisecond is the least"),
        (timed, {"sliding": 1, "ttl": 1}, "aggregate: say when a key is forgotten"),
        (table, {"sliding": 1}, "sliding=1: a table's row counts until it is deleted"),
    ]:
        with pytest.raises(OptionError, match=words):
            app.aggregate(rows, "user", n="count(*)", **options)  # type: ignore[call-overload]
