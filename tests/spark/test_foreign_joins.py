"""Joins of tables by a foreign key: what a batch joins, after every change."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines import App, OptionError
from moldau.pipelines.streams.foreign_joins import ForeignJoinedTable
from moldau.testing import Pipeline
from moldau.testing.broker import Broker
from tests.spark.apps import Apps
from tests.spark.tables import World, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = int(os.environ.get("MOLDAU_TABLE_BATCHES", "2"))


@pytest.mark.parametrize("how", [pytest.param("inner", marks=pytest.mark.soak), "left"])
def test_rows_are_those_of_a_batch(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path, how: str
) -> None:
    world = World(spark, broker, topic, tmp_path)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    lines, prices = world.topic("lines", 2), world.topic("prices", 3)
    left = world.table(lines, "line int", "shop string, item int, at timestamp")
    # A key of several columns, by other names.
    right = world.table(prices, "seller string, thing int", "price decimal(5,2)")
    table: dict[object, tuple[object, ...]] = {}

    def line() -> dict[str, object]:
        item = chance.choice([1, 2, None])
        return {"shop": chance.choice(["a", "é"]), "item": item, "at": "2026-10-25T00:30:00.5Z"}

    # Every run is a restart that goes on from the checkpoint.
    for _ in range(BATCHES):
        for _ in range(chance.choice([1, 5, 12])):
            put(broker, lines, (chance.randrange(8), line() if chance.random() < 0.8 else None))
        for _ in range(chance.choice([0, 1, 3])):
            seller, thing = chance.choice(["a", "é"]), chance.choice([1, 2])
            key = f'{{"seller":"{seller}","thing":{thing}}}'
            price = {"price": chance.randrange(3) + 0.25}
            put(broker, prices, (key, price if chance.random() < 0.7 else None))
        joined = ForeignJoinedTable(left, right, ["shop", "item"], how)
        changed = world.run(joined.changes())
        assert len({row[0] for row in changed}) == len(changed), f"seed {seed}"
        for key, *values, is_deleted in changed:
            if is_deleted:
                table.pop(key, None)
            else:
                table[key] = (key, *values)
        sides = left.snapshot().alias("l"), right.snapshot().alias("r")
        is_equal = "l.shop = r.seller AND l.item = r.thing"
        columns = ["l.line", "l.shop", "l.item", "l.at", "r.price"]
        theirs = sides[0].join(sides[1], F.expr(is_equal), how).select(*columns)
        assert table == {row[0]: tuple(row) for row in theirs.collect()}, f"seed {seed}"
    assert joined.snapshot().schema == theirs.schema
    assert sorted(map(repr, joined.snapshot().collect())) == sorted(map(repr, theirs.collect()))


def test_a_row_that_points_elsewhere_is_written_once(pipeline: Callable[..., Pipeline]) -> None:
    def make() -> App:
        app = App("shop")
        orders = app.table("orders", "id string", "user string, amount int")
        users = app.table("users", "user string", "name string, city string")
        cities = app.table("cities", "city string", "country string")
        named = app.join(orders, users, on="user")
        placed = app.join(named, cities, on="city", how="left")
        app.to(placed, "placed")
        # Groups may be of joined rows.
        app.to(app.aggregate(placed, by="country", total="sum(amount)"), "totals")
        return app

    with pipeline(make) as t:
        t.send("users", [{"user": "ann", "name": "Ann", "city": "Brno"}, {"user": "bob"}])
        t.send("cities", [{"city": "Brno", "country": "CZ"}])
        t.send("orders", [{"id": "1", "user": "ann", "amount": 3}])
        t.run()
        t.restart()
        t.send("orders", [{"id": "1", "user": "bob", "amount": 3}, {"id": "2", "user": "cid"}])
        t.run()
        t.delete("users", "bob")
        t.run()
        assert t.rows("placed") == [
            {"user": "ann", "amount": 3, "name": "Ann", "city": "Brno", "country": "CZ"},
            {"user": "bob", "amount": 3, "name": None, "city": None, "country": None},
            None,
        ]
        assert t.rows("totals") == [{"total": 3}, None]


def test_mistakes_are_one_line(apps: Apps) -> None:
    app = apps.make()
    orders = app.table("orders", "id string", "user string, amount int")
    users = app.table("users", "user string", "name string")
    for options, words in [
        (
            {"on": "user", "how": "outer"},
            "how=outer: by a column of the left table, inner and left",
        ),
        ({"on": "amount"}, "on=amount: the left table's is int, the table's string; cast"),
        ({"on": "buyer"}, "on=buyer: the left table has id, user, amount"),
        ({"on": ["user", "id"]}, "on=user, id: the table's key has 1 columns, user"),
    ]:
        with pytest.raises(OptionError, match=words):
            app.join(orders, users, **options)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="how=right"):
        app.join(orders, users, on="id", how="right")
