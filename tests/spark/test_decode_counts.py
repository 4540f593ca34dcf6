"""How many records a query has left out, by Spark's progress."""

import json
from functools import reduce
from operator import add
from typing import Any

import pytest

from moldau.pipelines import App
from moldau.pipelines import functions as F  # noqa: N812 - as apps have it
from moldau.pipelines.decoding.decode_counts import DecodeCounts, read_decode_counts
from moldau.testing.broker import Broker
from tests.spark.apps import Apps, values
from tests.spark.test_app_records import BAD_KEY, BAD_VALUE, GOOD, send_raw


def run_counted(app: App) -> dict[str, DecodeCounts]:
    """Run an app once, and return what each query has counted."""
    found = {}
    for query in app.start(once=True):
        query.awaitTermination()
        batches = (read_decode_counts(json.loads(each.json)) for each in query.recentProgress)
        found[str(query.name)] = reduce(add, batches, DecodeCounts())
    app.stop()
    return found


@pytest.fixture
def filled(broker: Broker, topic: str) -> str:
    """A topic with a good record, and three that do not decode."""
    broker.create_topic(topic, partitions=2)
    send_raw(broker, topic, GOOD, BAD_VALUE, BAD_VALUE, BAD_KEY)
    return topic


@pytest.mark.parametrize(
    ("reading", "left_out", "written"),
    [
        ({"schema": "n int", "key": "k int"}, 3, [{"n": 7}]),
        ({"format": "int", "key": "k int"}, 4, []),
        ({"format": "string", "key": "k int"}, 1, None),
    ],
    ids=["json", "numbers", "texts"],
)
def test_what_is_skipped_is_counted(
    apps: Apps,
    broker: Broker,
    filled: str,
    reading: dict[str, Any],
    left_out: int,
    written: list[Any] | None,
) -> None:
    app = apps.make(on_error="skip")
    rows = app.stream(filled, **reading)
    app.to(rows.drop("k"), f"{filled}-copy")
    assert run_counted(app) == {f"{filled}-copy": DecodeCounts(skipped=left_out)}
    if written is not None:
        found = values(broker, f"{filled}-copy") if written else []
        assert sorted(found, key=str) == written


def test_dead_letters_are_counted_where_they_are_left_out_and_where_they_are_written(
    apps: Apps, filled: str
) -> None:
    app = apps.make(on_error="dead-letter")
    rows = app.stream(filled, "n int", key="k int")
    # As updates these go through foreachBatch; and a query may read a topic twice.
    again = app.stream(filled, "n int", key="k int", on_error="skip")
    both = rows.unionAll(again)
    counts = both.groupBy("k").agg(F.count("*").alias("n"))
    app.declare(counts, f"{filled}-counts", key="k")
    app.to(rows, f"{filled}-copy", key="k")
    assert run_counted(app) == {
        f"{filled}-counts": DecodeCounts(skipped=3, dead_lettered=3),
        f"{filled}-copy": DecodeCounts(dead_lettered=3),
        f"{apps.name}.dead-letters": DecodeCounts(dead_lettered=3),
    }
