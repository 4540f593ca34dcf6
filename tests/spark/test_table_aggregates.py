"""Aggregates over tables: what a batch computes of the rows that are there, after every change."""

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines import App, OptionError, PipelineError
from moldau.pipelines.streams.table_aggregates import AggregatedTable
from moldau.testing import Pipeline
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps
from tests.spark.tables import World, put
from tests.spark.test_app_aggregates import RESULTS, SCHEMA, latest, random_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = int(os.environ.get("MOLDAU_TABLE_BATCHES", "2"))


def test_groups_and_types_are_those_of_a_batch(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    world = World(spark, broker, topic, tmp_path)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    name = world.topic("rows", 3)
    table = world.table(name, "id string", SCHEMA)
    groups: dict[object, tuple[object, ...]] = {}
    # Every run is a restart that goes on from the checkpoint.
    for _ in range(BATCHES):
        records = [
            (f"row {chance.randrange(20)}", random_row(chance) if chance.random() < 0.7 else None)
            for _ in range(chance.choice([1, 10, 25]))
        ]
        put(broker, name, *records)
        aggregated = AggregatedTable(table, "k", RESULTS)
        changed = world.run(aggregated.changes())
        assert len({row[0] for row in changed}) == len(changed)
        for group, *results, is_deleted in changed:
            if is_deleted:
                assert groups.pop(group), f"seed {seed}"
            else:
                groups[group] = (group, *results)
        theirs = (
            table.snapshot()
            .filter("k IS NOT NULL")
            .groupBy("k")
            .agg(*(F.expr(text).alias(called) for called, text in RESULTS.items()))
        )
        expected = latest([tuple(row) for row in theirs.collect()])
        assert {key: repr(row) for key, row in groups.items()} == {
            key: repr(row) for key, row in expected.items()
        }, f"seed {seed}"
    fields = [(each.name, each.dataType) for each in theirs.schema]
    assert [(each.name, each.dataType) for each in aggregated.snapshot().schema] == fields
    assert [(each.name, each.dataType) for each in aggregated.changes().schema][:-1] == fields


def test_a_row_leaves_its_group_and_joins_another(pipeline: Callable[..., Pipeline]) -> None:
    def make() -> App:
        app = App("shop")
        users = app.table("users", "user string", "city string, spent double")
        cities = app.table("cities", "city string", "country string")
        by_city = app.aggregate(users, by="city", people="count(*)", most="max(spent)")
        # Groups are a table as others are.
        app.to(app.join(by_city, cities, how="left"), "by-city", headers={"city": "city"})
        return app

    def user(name: str, city: str | None, spent: float) -> dict[str, object]:
        return {"user": name, "city": city, "spent": spent}

    with pipeline(make) as t:
        t.send("cities", [{"city": "Brno", "country": "CZ"}])
        t.send("users", [user("ann", "Brno", 3), user("bob", "Brno", 5), user("cid", None, 1)])
        t.run()
        assert t.rows("by-city") == [{"people": 2, "most": 5.0, "country": "CZ"}]
        t.restart()
        t.send("users", [user("bob", "Graz", 5), user("ann", "Brno", 3)])
        t.run()
        t.delete("users", "ann")
        t.run()
        records = t.records("by-city")
        found = list(zip([each.key for each in records], t.rows("by-city"), strict=True))
        assert sorted(found[1:3], key=repr) == [
            (b"Brno", {"people": 1, "most": 3.0, "country": "CZ"}),
            (b"Graz", {"people": 1, "most": 5.0, "country": None}),
        ]
        # A group without rows is no row, and so is what is joined with it.
        assert found[3:] == [(b"Brno", None)]
        assert dict(records[-1].headers) == {"city": b"Brno"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "nobody"}, "by=nobody: the rows have id, user, amount, at"),
        ({"ttl": "1 day"}, "ttl=1 day: a table's row counts until it is deleted; leave that out"),
        ({"n": "sum(user)"}, r"n=sum\(user\): it is string, no number; cast it"),
        ({"n": "median(amount)"}, "count, sum, avg, mean, min, max are there"),
    ],
)
def test_mistakes_are_one_line(apps: Apps, options: Mapping[str, Any], words: str) -> None:
    app = apps.make()
    orders = app.table("orders", "id string", ORDERS.partition(", ")[2])
    with pytest.raises(OptionError, match=words):
        app.aggregate(orders, **{"by": "user", "n": "count(*)", **options})
    rows = app.stream("orders", ORDERS)
    with pytest.raises(OptionError, match="aggregate: say when a key is forgotten"):
        app.aggregate(rows, "user", n="count(*)")  # type: ignore[call-overload]
    with pytest.raises(PipelineError, match="this table is in no topic"):
        app.aggregate(orders, "user", n="count(*)").get("ann")


def test_other_results_need_a_reset(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    put(broker, topic, ("1", {"user": "ann", "amount": 2.5}))

    def counting(**results: str) -> App:
        app = apps.make()
        orders = app.table(topic, "id string", "user string, amount double")
        app.to(app.aggregate(orders, "user", **results), f"{topic}-out")
        return app

    counting(n="sum(amount)").run(once=True)
    counting(total="sum(amount)").run(once=True)
    with pytest.raises(
        PipelineError,
        match=r"kept state of groups of a table: sum\(amount\): double by user: string "
        r".* and keeps that of groups of a table: avg\(amount\)",
    ):
        counting(n="avg(amount)").start()
