"""Groups of tables in SQL: what the same statement gives of the rows that are there."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.testing import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = int(os.environ.get("MOLDAU_TABLE_BATCHES", "2"))
COLUMNS: Final = {"users": "user string, name string, city string", "points": "user string, n int"}
STATEMENTS: Final = {
    "totals": (
        "SELECT u.city AS c, sum(n) AS s, avg(p.n) AS a, min(u.name), max(n) - count(*) AS d FROM "
        "{users} u LEFT JOIN {points} p ON u.user = p.user GROUP BY u.city"
    ),
    "several": (
        "SELECT length(name) + 1 AS l, city, count(*) AS k, concat(city, '-', count(*)) AS t, "
        "k + 1 AS more FROM {users} WHERE name <> 'zz' OR name IS NULL "
        "GROUP BY length(name) + 1, city HAVING k > 1 OR city IS NULL OR max(user) > 'u5'"
    ),
    "computed": (
        "SELECT coalesce(city, 'none') AS `the city`, sum(CAST(length(name) AS decimal(10,2))) / 3 "
        "FROM {users} GROUP BY 1"
    ),
}


def as_json(rows: Any) -> list[str]:
    """Return rows as an app writes them, without those whose only key is null."""
    texts = rows.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) AS j").collect()
    return [row["j"] for row in texts if not row["j"].startswith('{"c":null')]


def test_groups_are_those_of_a_batch(
    pipeline: Callable[..., Pipeline], spark: "SparkSession", tmp_path: Path
) -> None:
    names = {name: name for name in COLUMNS}
    path = tmp_path / "groups.sql"
    path.write_text(
        "CREATE TABLE users (user STRING PRIMARY KEY, name STRING, city STRING) "
        "WITH (topic='users');\n"
        "CREATE TABLE points (user STRING PRIMARY KEY, n INT) WITH (topic='points');\n"
        + "".join(
            f"CREATE TABLE {name} AS {text.format(**names)};\n" for name, text in STATEMENTS.items()
        )
    )
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    there: dict[str, dict[str, dict[str, Any]]] = {"users": {}, "points": {}}

    def change(table: str, row: dict[str, Any]) -> None:
        if chance.random() < 0.25:
            there[table].pop(row["user"], None)
            t.delete(table, row["user"])
        else:
            there[table][row["user"]] = row
            t.send(table, [row])

    with pipeline(str(path)) as t:
        for _ in range(BATCHES):
            for _ in range(12):
                user = f"u{chance.randrange(8)}"
                name, city = chance.choice(["a", "zz", None]), chance.choice(["Brno", "Graz", None])
                change("users", {"user": user, "name": name, "city": city})
                change("points", {"user": user, "n": chance.choice([1, 2, 5, None])})
            t.run()
            rows = {
                table: spark.createDataFrame([tuple(row.values()) for row in found.values()], ddl)
                for (table, found), ddl in zip(there.items(), COLUMNS.values(), strict=True)
            }
            for name, text in STATEMENTS.items():
                latest = {record.key: record.value for record in t.records(name)}
                written = [value.decode() for value in latest.values() if value is not None]
                expected = as_json(spark.sql(text, None, **rows))
                assert sorted(written) == sorted(expected), f"{name}, seed {seed}"
            t.restart()
