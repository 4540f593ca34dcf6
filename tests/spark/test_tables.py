"""Tables: the latest row of each key, as a batch, as changes, and by its key."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from moldau import Producer
from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.decoding.key_fields import key_fields
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.joins import join, join_stream
from moldau.pipelines.streams.packing import pack, unpack
from moldau.pipelines.streams.tables import Table
from moldau.testing.broker import Broker
from tests.spark.tables import World, put, rows_of, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def world(spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path) -> World:
    return World(spark, broker, topic, tmp_path)


def test_snapshot_changes_and_get(world: World) -> None:
    users = world.topic("users", 3)
    names = [f"user{number}" for number in range(9)]
    put(world.broker, users, *values(names), (None, {"name": "Nobody"}))
    put(world.broker, users, ("user1", {"name": "One"}), ("user2", None), ("new", {}))
    with Producer(world.broker.bootstrap_servers, transactional_id=users) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(users, b'{"name": "Never"}', b"user3").result()
        producer.abort_transaction()
    table = world.table(users, "user string", "name string")

    left = {name: name.capitalize() for name in names} | {"user1": "One", "new": None}
    del left["user2"]
    assert rows_of(table.snapshot()) == sorted(left.items(), key=repr)

    changes = table.changes()
    assert changes.columns == ["user", "name", "is_deleted"]
    found = world.run(changes)
    assert len(found) == len(names) + 3
    assert ("user2", None, True) in found
    assert ("new", None, False) in found

    assert {name: table.get(name) for name in left} == {
        name: {"name": value} for name, value in left.items()
    }
    assert table.get("user2") is None
    assert table.get("nobody") is None
    with pytest.raises(PipelineError, match="key user=5: string is wanted"):
        table.get(5)


def test_keys_of_several_columns_and_values_that_are_no_structs(world: World) -> None:
    prices, names = world.topic("prices", 2), world.topic("names", 2)
    put(world.broker, prices, (b'{"shop":"a","item":1}', {"price": 5}))
    put(world.broker, names, (1, 7))
    priced = world.table(prices, "shop string, item int", "price int")
    named = world.table(names, "item int", None, "string")
    assert rows_of(priced.snapshot()) == [("a", 1, 5)]
    assert priced.get(("a", 1)) == {"price": 5}
    assert rows_of(named.snapshot()) == [(1, "7")]
    assert named.get(1) == {"value": "7"}


def joined(world: World, cities: str, names: str, how: str) -> Table:
    both = join(
        world.table(cities, "user int", "city string"),
        world.table(names, "id int", "name string"),
        how=how,
    )
    assert isinstance(both, Table)
    return both


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_two_tables_are_one(world: World, how: str) -> None:
    cities, names = world.topic("cities"), world.topic("names", 2)
    put(world.broker, cities, (-1, {"city": "Brno"}), (2, {"city": "Praha"}), (4, None))
    put(world.broker, names, (-1, {"name": "Ann"}), (3, {"name": "Cid"}), (5, None))
    full, left_only, right_only = (-1, "Brno", "Ann"), (2, "Praha", None), (3, None, "Cid")
    rows = [full] + [left_only] * (how != "inner") + [right_only] * (how == "outer")
    table = joined(world, cities, names, how)
    assert rows_of(table.snapshot()) == sorted(rows, key=repr)
    assert world.run(table.changes()) == sorted([(*row, False) for row in rows], key=repr)

    # What did not change is not told again; what is gone is told once, if it was there.
    put(world.broker, names, (-1, {"name": "Ann"}), (2, None), (3, None))
    put(world.broker, cities, (-1, None))
    changes = {
        "inner": [(-1, None, None, True)],
        "left": [(-1, None, None, True)],
        "outer": [(-1, None, "Ann", False), (3, None, None, True)],
    }
    assert world.run(joined(world, cities, names, how).changes()) == changes[how]


def test_a_joined_table_is_a_table(world: World) -> None:
    cities, names, orders = world.topic("cities"), world.topic("names"), world.topic("orders")
    put(world.broker, cities, (1, {"city": "Brno"}), (2, {"city": "Praha"}))
    put(world.broker, names, (1, {"name": "Ann"}))
    put(world.broker, orders, (None, {"user": 1}), (None, {"user": 2}))
    table = joined(world, cities, names, "inner")
    stream = world.stream(orders, "user int")
    assert world.run(join_stream(stream, table)) == [(1, "Brno", "Ann")]
    with pytest.raises(
        PipelineError, match=r"get\(1\): this table is in no topic; write it to one"
    ):
        table.get(1)
    with pytest.raises(PipelineError, match="the keys differ, struct<user:int> and struct<u:str"):
        join(table, world.table(names, "u string", "n string"))
    with pytest.raises(PipelineError, match="two columns city; rename one"):
        join(table, world.table(names, "id int", "city string"))


def test_what_is_packed_is_the_same_unpacked(spark: "SparkSession") -> None:
    rows = spark.sql(
        "SELECT CAST(1 AS tinyint) AS a, double('NaN') AS b, 1.10BD AS c, "
        "timestamp'2024-10-27 00:30:00.000001Z' AS d, date'2024-05-01' AS e, x'00ff' AS f, "
        "timestamp_ntz'2024-10-27 02:30:00.000001' AS g, named_struct('x', null, 'y', 'é\"') AS h, "
        "array(1, null) AS `i j`, map('k', 0.5D) AS k, CAST(null AS string) AS l, -1L AS m"
    )
    packed = rows.select(pack(F.struct("*")).alias("row"))
    again = unpack(packed, {"row": rows.schema}).select("row.*")
    assert repr(again.collect()) == repr(rows.collect())
    numbered = StructType.fromDDL("a map<int, int>")
    with pytest.raises(PipelineError, match="keeps its rows as JSON"):
        unpack(packed, {"row": numbered})


@pytest.mark.parametrize(
    ("ddl", "keys"),
    [
        ("k string", [("é",), ("",)]),
        ("k int", [(0,), (-1,), (2**31 - 1,), (-(2**31),)]),
        ("k bigint", [(0,), (-1,), (2**63 - 1,), (-(2**63),)]),
        ("k binary", [(bytearray(b"\x00\xff"),)]),
        ("k string, at timestamp", [("a", datetime(2024, 5, 1, 8, 0, 0, 1)), (None, None)]),  # noqa: DTZ001
        ("k struct<x: int>", [((5,),)]),
    ],
)
def test_a_key_is_the_same_after_its_way_as_bytes(
    spark: "SparkSession", ddl: str, keys: list[tuple[object, ...]]
) -> None:
    rows = spark.createDataFrame(keys, ddl)
    packed = rows.select(key_column(rows.schema, rows.columns).alias("key"))
    assert packed.select(*key_fields(F.col("key"), rows.schema)).collect() == rows.collect()
