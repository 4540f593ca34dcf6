"""Joins of streams with tables: what is seen when, and what stays over a restart."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

import moldau
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.joins import join, join_stream
from moldau.testing.broker import Broker
from tests.spark.tables import World, put, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def world(spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path) -> World:
    return World(spark, broker, topic, tmp_path)


def order(number: int, user: str | None) -> tuple[None, object]:
    return None, {"id": number, "user": user}


def enriched(world: World, orders: str, users: str, how: str) -> "DataFrame":
    return join_stream(
        world.stream(orders, "id int, user string"),
        world.table(users, "user string", "name string"),
        how=how,
    )


def test_a_stream_sees_the_table_as_it_is_when_its_rows_come(world: World) -> None:
    orders, users = world.topic("orders"), world.topic("users", 2)
    put(world.broker, orders, order(1, "ann"), order(2, "bob"), order(3, None))
    # Later in the topic than the order, and still applied before it.
    put(world.broker, users, *values(["ann"]), ("ann", {"name": "Ann II"}))
    rows = enriched(world, orders, users, "left")
    assert rows.columns == ["id", "user", "name"]
    assert world.run(rows) == [(1, "ann", "Ann II"), (2, "bob", None), (3, None, None)]

    # The state is there after a restart; updates, new partitions and tombstones are seen.
    with moldau.Admin(world.broker.bootstrap_servers) as admin:
        admin.create_partitions(users, 3)
    put(world.broker, users, *values(["bob"]), partition=2)
    put(world.broker, orders, order(4, "ann"), order(5, "bob"))
    rows = enriched(world, orders, users, "left")
    assert world.run(rows) == [(4, "ann", "Ann II"), (5, "bob", "Bob")]

    put(world.broker, users, ("ann", None))
    put(world.broker, orders, order(6, "ann"), order(7, "bob"))
    assert world.run(rows) == [(6, "ann", None), (7, "bob", "Bob")]


def test_an_inner_join_has_matches_only_and_can_be_counted(world: World) -> None:
    orders, users = world.topic("orders"), world.topic("users")
    put(world.broker, users, *values(["ann", "bob"]), ("bob", None))
    put(world.broker, orders, order(1, "ann"), order(2, "bob"), order(3, None), order(4, "cid"))
    counts = enriched(world, orders, users, "inner").groupBy("name").count()
    assert world.run(counts, "update") == [("Ann", 1)]
    put(world.broker, users, *values(["cid"]))
    put(world.broker, orders, order(5, "ann"), order(6, "cid"))
    assert world.run(counts, "update") == [("Ann", 2), ("Cid", 1)]


def test_int_keys_all_types_and_a_window_behind_the_join(world: World) -> None:
    orders, users = world.topic("orders"), world.topic("users")
    put(world.broker, users, (-7, {"at": "2024-05-01T10:00:00.123456Z", "tags": ["a", "b"]}))
    for minute in (1, 1, 2, 9):
        time = f"2024-10-27T00:0{minute}:00.000001Z"
        put(world.broker, orders, (None, {"buyer": -7, "when": time}))
    put(world.broker, orders, (None, {"buyer": 7, "when": "2024-10-27T00:01:00Z"}))
    stream = world.stream(orders, "buyer int, when timestamp", at="when")
    table = world.table(users, "user int", "at timestamp, tags array<string>")
    joined = join_stream(stream, table, on="buyer")
    seconds = F.col("at").cast("double").alias("seconds")
    window = joined.groupBy(F.window("when", "1 minute"), "tags", "at").count()
    assert world.run(window.select("tags", seconds, "count")) == [
        (["a", "b"], 1714557600.123456, 1),
        (["a", "b"], 1714557600.123456, 2),
    ]


def test_behind_the_watermark_rows_are_dropped_and_without_a_time_they_stay(world: World) -> None:
    orders, users = world.topic("orders"), world.topic("users")
    stream = world.stream(orders, "user string, at timestamp", at="at")
    rows = join_stream(stream, world.table(users, "user string", "name string"), how="left")
    counted = rows.select("user", F.col("at").cast("long").alias("at"), "name")
    put(world.broker, orders, (None, {"user": "ann", "at": "1970-01-01T00:01:40Z"}))
    assert world.run(counted) == [("ann", 100, None)]
    put(world.broker, users, *values(["ann"]))
    late, early = "1970-01-01T00:01:00Z", "1970-01-01T00:01:35Z"
    for time in (late, early, None):
        put(world.broker, orders, (None, {"user": "ann", "at": time}))
    assert world.run(counted) == [("ann", 95, "Ann"), ("ann", None, "Ann")]


def test_what_cannot_be_joined_is_one_line(world: World) -> None:
    orders, users = world.topic("orders"), world.topic("users")
    stream = world.stream(orders, "id int, user string, name string")
    table = world.table(users, "user string", "name string")
    with pytest.raises(PipelineError, match="two columns name; rename"):
        join(stream, table)
    with pytest.raises(PipelineError, match="on=id: the stream's is int, the table's string; cast"):
        join(stream.drop("name"), table, on="id")
    with pytest.raises(PipelineError, match="on=buyer: the stream has id, user, name"):
        join(stream, table, on="buyer")
    with pytest.raises(PipelineError, match="how=outer: inner or left is allowed"):
        join(stream.drop("name"), table, how="outer")
    with pytest.raises(PipelineError, match=r"use left.join\(right, ...\) of PySpark"):
        join(stream, stream)
    with pytest.raises(PipelineError, match="the stream is the left side"):
        join(table, stream)
    with pytest.raises(PipelineError, match=r"a batch; join it with table.snapshot\(\)"):
        join(table.snapshot(), table)
