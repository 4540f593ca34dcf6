"""HAVING over changes: after every batch, a table has what the same SELECT has as a batch."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.pipelines.streams.outputs import to_value
from moldau.testing import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = int(os.environ.get("MOLDAU_SQL_ROUNDS", "2"))
ROWS, SEED = 8, 3

# Names that are both of the input and of the result, conditions that come and go, and null.
TABLES = {
    "near_zero": (
        "SELECT user, sum(amount) AS amount, count(*) AS n FROM {} GROUP BY user "
        "HAVING amount BETWEEN -2 AND 2 AND count(amount) > 0"
    ),
    "odd": (
        "SELECT k % 2 AS k, user AS who, max(amount) AS top FROM {} GROUP BY k % 2, user "
        "HAVING k = 1 AND sum(k) % 3 <> 0 OR who = 'eva' AND max(k) < 4"
    ),
    "by_day": (
        "SELECT window, user, count(*) AS n FROM {} GROUP BY window(at, '1 day'), user "
        "HAVING n % 2 = 0 AND window.start < timestamp'2026-01-03'"
    ),
}
SQL = """
CREATE STREAM orders (id STRING KEY, user STRING, k INT, amount INT, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='100 days');
CREATE TABLE cities (user STRING PRIMARY KEY, city STRING) WITH (topic='cities');
CREATE TABLE cheap AS SELECT city, count(*) AS n FROM orders o JOIN cities c ON o.user = c.user
  GROUP BY city HAVING sum(o.amount) < 5 EMIT CHANGES;
"""


def make(random_: random.Random, place: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"o{place}-{number}",
            "user": random_.choice(["ann", "bob", "eva"]),
            "k": random_.randrange(6),
            "amount": random_.choice([-3, -1, 0, 1, 2, None]),
            "at": f"2026-01-{random_.randrange(1, 4):02}T08:00:00Z",
        }
        for number in range(ROWS)
    ]


@pytest.fixture
def file(tmp_path: Path, spark: object) -> str:
    path = tmp_path / "having.sql"
    made = [
        f"CREATE TABLE {name} AS {text.format('orders')} EMIT CHANGES;\n"
        for name, text in TABLES.items()
    ]
    path.write_text(SQL + "".join(made))
    return str(path)


def test_tables_have_the_groups_that_a_batch_has(
    pipeline: Callable[..., Pipeline], file: str, spark: "SparkSession"
) -> None:
    random_ = random.Random(SEED)
    sent: list[dict[str, Any]] = []
    with pipeline(file) as t:
        t.send("cities", [{"user": "ann", "city": "Brno"}, {"user": "bob", "city": "Ulm"}])
        gone = 0
        for place in range(ROUNDS):
            rows = make(random_, place)
            sent += rows
            t.send("orders", rows)
            t.run()
            schema = "id string, user string, k int, amount int, at string"
            given = [tuple(row.values()) for row in sent]
            batch = spark.createDataFrame(given, schema).selectExpr(
                "* EXCEPT (at)", "to_timestamp(at) AS at"
            )
            for name, text in TABLES.items():
                chosen = spark.sql(text.format("{rows}"), None, rows=batch)
                written = chosen.select(to_value(chosen.columns).alias("value")).collect()
                latest = {each.key: each.value for each in t.records(name)}
                there = sorted(value.decode() for value in latest.values() if value is not None)
                assert there == sorted(row["value"] for row in written), (name, place)
                gone += len(latest) - len(there)
            totals: dict[str, int] = {}
            for row in sent:
                city = {"ann": "Brno", "bob": "Ulm"}.get(row["user"])
                if city is not None:
                    totals[city] = totals.get(city, 0) + (row["amount"] or 0)
            latest = {each.key: each.value for each in t.records("cheap")}
            there_now = {key for key, value in latest.items() if value is not None}
            assert there_now == {city.encode() for city, total in totals.items() if total < 5}
        assert gone > 0
