"""Aggregates that forget: the same results as Spark's own, as long as they are kept."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.pipelines import App, OptionError, PipelineError
from moldau.pipelines.streams.aggregates import aggregate
from moldau.pipelines.streams.idle_batches import idle_batches_of
from moldau.pipelines.streams.outputs import explain
from moldau.testing import Pipeline
from moldau.testing.broker import Broker
from tests.spark.apps import ORDERS, Apps, order, send, values
from tests.spark.tables import World, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    "k string, n int, l bigint, f float, d double, p decimal(7,2), b boolean, t timestamp, "
    "on date, x binary, h tinyint"
)
RESULTS = {
    "rows": "count(*)",
    "ns": "count(n)",
    "twice": "sum(2L * n)",
    "l": "SUM(l)",
    "f": "sum(f)",
    "d": "sum(d)",
    "p": "sum(p)",
    "small": "sum(h)",
    "mean_n": "avg(n)",
    "mean_d": "mean(d)",
    "mean_p": "avg(p)",
    **{f"min_{name}": f"min({name})" for name in "nlfdpbtxhk"},
    **{f"max_{name}": f"max({name})" for name in "nlfdpbtxhk"},
    "first_day": "min(on)",
    "last_day": "max(`on`)",
}


def random_row(chance: random.Random) -> dict[str, Any]:
    """Make a row in which anything may be null; sums of its fractions are exact."""
    quarter = chance.randrange(-1000, 1000) / 4
    row = {
        "k": chance.choice(["ann", "bob", "cid", "é"]),
        "n": chance.randrange(-(2**31), 2**31),
        "l": chance.randrange(-(2**50), 2**50),
        "f": quarter,
        "d": chance.choice([quarter, quarter, "NaN", "Infinity"]) if chance.random() < 0.1
        else quarter,
        "p": f"{chance.randrange(-9999999, 9999999) / 100:.2f}",
        "b": chance.random() < 0.5,
        "t": f"2026-{chance.randrange(1, 13):02d}-25T0{chance.randrange(10)}:30:00.000001Z",
        "on": f"{chance.randrange(1900, 2100)}-02-03",
        "x": chance.choice(["AP8=", "/w==", ""]),
        "h": chance.randrange(-128, 128),
    }  # fmt: skip
    return {name: None if chance.random() < 0.3 else value for name, value in row.items()}


def latest(found: list[tuple[object, ...]]) -> dict[object, tuple[object, ...]]:
    return {row[0]: row for row in found}


def test_results_and_types_are_those_of_spark(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    world = World(spark, broker, topic, tmp_path)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    name = world.topic("rows", 3)
    batch = spark.read.format("moldau").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    sent: list[dict[str, Any]] = []
    results: dict[object, tuple[object, ...]] = {}
    # Every run is a restart that goes on from the checkpoint.
    for count in (40, 1, 25):
        rows = [random_row(chance) for _ in range(count)]
        sent += rows
        put(broker, name, *((None, row) for row in rows))
        ours = aggregate(world.stream(name, SCHEMA), "k", "7 days", RESULTS)
        with idle_batches_of(spark, explain(ours), once=True):
            results |= latest(world.run(ours))
    decoded = (
        batch.option("subscribe", name)
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("v"))
        .select("v.*")
    )
    theirs = decoded.groupBy("k").agg(*(F.expr(text).alias(as_) for as_, text in RESULTS.items()))
    assert decoded.count() == len(sent)
    assert [(each.name, each.dataType) for each in ours.schema] == [
        (each.name, each.dataType) for each in theirs.schema
    ]
    expected = latest([tuple(row) for row in theirs.collect()])
    assert {key: repr(row) for key, row in results.items()} == {
        key: repr(row) for key, row in expected.items()
    }, f"seed {seed}"


def forgetting(apps: Apps, topic: str, ttl: str, **results: str) -> App:
    app = apps.make()
    orders = app.stream(topic, ORDERS)
    query = app.to(
        app.aggregate(orders, by="user", ttl=ttl, **(results or {"total": "sum(amount)"})),
        f"{topic}-out",
        key="user",
    )
    assert (query.emit, query.mode) == ("changes", "append")
    return app


def test_a_key_is_forgotten_when_its_time_has_come(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    for number, ttl in enumerate(["7 days", "1 ms", "1 ms"]):
        send(broker, topic, [order(number, "ann", 1, 2.5), order(number, "bob", 1, 1)])
        # The ttl may change: it is that of the time when a row came.
        forgetting(apps, topic, ttl).run(once=True)
    found = [each["total"] for each in values(broker, f"{topic}-out") if each["user"] == "ann"]
    assert found == [2.5, 5.0, 2.5]
    # What is forgotten is dropped from the state, and leaves no tombstone.
    send(broker, topic, [order(9, "cid", 1)])
    app = forgetting(apps, topic, "1 ms")
    (running,) = app.start(once=True)
    assert running.awaitTermination(120)
    progress = running.lastProgress
    app.stop()
    assert progress is not None
    assert sum(each.numRowsTotal for each in progress.stateOperators) == 1
    assert None not in values(broker, f"{topic}-out")


def test_what_changes_needs_a_reset(apps: Apps, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    send(broker, topic, [order(1, "ann", 1)])
    forgetting(apps, topic, "7 days").run(once=True)
    # Another name for the same is no change of state.
    forgetting(apps, topic, "8 days", sum="sum(amount)").run(once=True)
    with pytest.raises(
        PipelineError,
        match=r"kept state of sum\(amount\): double by user: string, and keeps that of "
        rf"max\(amount\): double by user: string now.* reset .* --query {topic}-out",
    ):
        forgetting(apps, topic, "7 days", largest="max(amount)").start()


def test_a_key_of_several_columns_behind_a_join_and_in_a_preview(
    pipeline: Callable[..., Pipeline],
) -> None:
    def make() -> App:
        app = App("shop")
        orders = app.stream("orders", "id int, user string, at timestamp")
        users = app.table("users", "user string", "city string")
        joined = app.join(orders, users, how="left")
        by_city = app.aggregate(joined, ["city", "at"], ttl="1 h", rows="count(*)", last="max(id)")
        app.to(by_city, "cities", key=["city", "at"])
        return app

    at = "2026-10-25T00:30:00.000001Z"
    with pipeline(make) as t:
        t.send("users", [{"user": "ann", "city": "Brno"}])
        t.send(
            "orders", [{"id": n, "user": user, "at": at} for n, user in enumerate(["ann", "bob"])]
        )
        t.run()
        t.restart()
        t.send("orders", [{"id": 7, "user": "ann", "at": at}])
        t.run()
        found = {row["city"]: row for row in t.rows("cities")}
        assert found == {
            "Brno": {"city": "Brno", "at": at, "rows": 2, "last": 7},
            None: {"city": None, "at": at, "rows": 1, "last": 1},
        }
        orders = t.app.stream("orders", "id int")
        shown = t.app.preview(t.app.aggregate(orders, "id", ttl=60, n="count(1)"))
        assert sorted(map(tuple, shown)) == [(0, 1), (1, 1), (7, 1)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "nobody", "n": "count(*)"}, "by=nobody: the rows have id, user, amount, at"),
        ({"by": [], "n": "count(*)"}, "name what to group by and a result"),
        ({}, "name what to group by and a result"),
        ({"user": "count(*)"}, "there are two columns user"),
        ({"ttl": "soon", "n": "count(*)"}, "ttl=soon: 'soon' is no span of time"),
        ({"ttl": 0, "n": "count(*)"}, "ttl=0: a millisecond is the least"),
        ({"n": "amount"}, r'n=amount: write a function of SQL and what it takes, "sum\(amount\)"'),
        ({"n": F.lit}, "write a function of SQL"),
        ({"n": "median(amount)"}, r"n=median\(amount\): count, sum, avg, mean, min, max are there"),
        ({"n": "sum(price)"}, r"n=sum\(price\): A column, .* `price` cannot be resolved"),
        ({"n": "sum(user)"}, r"n=sum\(user\): it is string, no number; cast it"),
        ({"n": "sum(amount) + sum(amount)"}, r"n=sum\(amount\) \+ sum\(amount\): "),
        ({"n": "count(DISTINCT user)"}, r"n=count\(DISTINCT user\): "),
        ({"n": "sum(amount) FILTER (WHERE amount > 1)"}, r"n=sum\(amount\) FILTER"),
        ({"n": "max(array(amount))"}, r"it is array<double>; cast it"),
    ],
)
def test_mistakes_are_one_line(apps: Apps, options: Mapping[str, Any], words: str) -> None:
    app = apps.make()
    orders = app.stream("orders", ORDERS)
    with pytest.raises(OptionError if "two" not in words else PipelineError, match=words) as caught:
        app.aggregate(orders, **{"by": "user", "ttl": "1 day", **options})
    assert "\n" not in str(caught.value)
    with pytest.raises(PipelineError, match="these rows are a batch"):
        app.aggregate(app.spark.range(3), "id", ttl="1 day", n="count(*)")


def test_a_sum_that_has_no_place_is_one_line(pipeline: Callable[..., Pipeline]) -> None:
    def make() -> App:
        app = App("large")
        numbers = app.stream("numbers", "k string, n bigint")
        app.to(app.aggregate(numbers, "k", ttl="1 day", total="sum(n)"), "totals", key="k")
        return app

    with pipeline(make) as t:
        t.send("numbers", [{"k": "a", "n": 2**63 - 1}, {"k": "a", "n": 1}])
        with pytest.raises(
            PipelineError, match=r"^query totals: total=sum\(n\): 9223372036854775808 is"
        ):
            t.run()


class Counter(StatefulProcessor):
    """State of a user's own that goes by the clock."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("n", "n int", ttlDurationMs=3_600_000)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        count = (self._count.get() or (0,))[0] + sum(1 for _ in rows)
        self._count.update((count,))
        yield Row(k=key[0], n=count)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("mode", ["Append", "Update"])
def test_state_by_the_clock_ends_when_all_is_read(
    pipeline: Callable[..., Pipeline], mode: str
) -> None:
    def counts(app: App) -> DataFrame:
        keyed = app.stream("words", "k string").groupBy("k")
        return keyed.transformWithState(Counter(), "k string, n int", mode, "processingTime")

    def make() -> App:
        app = App("own")
        app.to(counts(app), "counts", key="k", emit="changes")
        return app

    with pipeline(make) as t:
        for _ in range(2):
            t.send("words", [{"k": "a"}])
            t.run()
        assert t.rows("counts") == [{"k": "a", "n": 1}, {"k": "a", "n": 2}]
        assert [tuple(row) for row in t.app.preview(counts(t.app))] == [("a", 2)]
