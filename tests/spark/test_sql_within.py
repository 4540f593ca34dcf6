"""Streams joined WITHIN a time, beside the same join computed in plain Python."""

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moldau import Producer
from moldau.testing import Pipeline

START = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = timedelta(milliseconds=20_250)
"""Rows are at whole and half seconds: none is exactly as late as it may be."""
ROUNDS = int(os.environ.get("MOLDAU_SQL_ROUNDS", "2"))
ROWS, SEED = 20, 17
FAR = timedelta(days=2)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

SQL = """
CREATE STREAM orders (id STRING KEY, n INT, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='20250 milliseconds');
CREATE STREAM paid (id STRING KEY, n INT, at BIGINT)
  WITH (topic='paid', event_time='at', watermark='20250 milliseconds');
CREATE STREAM met AS SELECT o.id, o.n AS a, p.n AS b, o.at FROM orders o
  JOIN paid p WITHIN (5 SECONDS, 30 SECONDS) ON o.id = p.id EMIT CHANGES;
CREATE STREAM asked (id STRING KEY, n INT) WITH (topic='asked');
CREATE STREAM told (id STRING KEY, n INT) WITH (topic='told');
CREATE STREAM talks AS SELECT coalesce(q.id, r.id) AS id, q.n AS a, r.n AS b FROM asked q
  FULL JOIN told r WITHIN 10 SECONDS GRACE PERIOD 20250 MILLISECONDS ON q.id = r.id
  PARTITION BY id;
CREATE TABLE in_time AS SELECT window, count(*) AS n
  FROM met GROUP BY window(at, '5 seconds') EMIT FINAL;
"""


@dataclass(frozen=True)
class Row:
    """A row of a stream."""

    key: str
    n: int
    at: datetime


@dataclass
class Oracle:
    """The join of two streams over the rows that are not late, round by round."""

    before: timedelta
    after: timedelta
    watermark: datetime = NEVER
    left: list[Row] = field(default_factory=list)
    right: list[Row] = field(default_factory=list)
    late: int = 0
    latest: dict[str, datetime] = field(default_factory=dict)

    def take(self, left: list[Row], right: list[Row]) -> None:
        for name, kept, rows in (("left", self.left, left), ("right", self.right, right)):
            kept += [row for row in rows if row.at > self.watermark]
            self.late += sum(row.at <= self.watermark for row in rows)
            self.latest[name] = max([row.at for row in rows] + [self.latest.get(name, START)])
        self.watermark = max(self.watermark, min(self.latest.values()) - GRACE)

    def results(self, *outer: str) -> list[tuple[str, int | None, int | None]]:
        found: list[tuple[str, int | None, int | None]] = []
        met: set[int] = set()
        for one in self.left:
            for other in self.right:
                is_near = one.at - self.before <= other.at <= one.at + self.after
                if one.key == other.key and is_near:
                    found.append((one.key, one.n, other.n))
                    met |= {id(one), id(other)}
        if "left" in outer:
            alone = [row for row in self.left if id(row) not in met]
            found += [(row.key, row.n, None) for row in alone if self.is_over(row.at + self.after)]
        if "right" in outer:
            alone = [row for row in self.right if id(row) not in met]
            found += [(row.key, None, row.n) for row in alone if self.is_over(row.at + self.before)]
        return sorted(found, key=str)

    def is_over(self, end: datetime) -> bool:
        return end < self.watermark


def make(random_: random.Random, place: int, first: int) -> list[Row]:
    """Return rows of a round: most are about its time, some are far behind it."""
    rows = []
    for number in range(ROWS):
        behind = random_.choice([0, 0, 0, 0, 30, 90])
        second = place * 60 + random_.randrange(0, 100) / 2 - behind
        at = START + timedelta(seconds=max(second, 0))
        rows.append(Row(random_.choice("abc"), first + number, at))
    return rows


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def rows_of(t: Pipeline, topic: str) -> list[tuple[Any, ...]]:
    found = [(row["id"], row["a"], row["b"]) for row in t.rows(topic)]
    return sorted(found, key=str)


def test_the_example_of_the_guide(tmp_path: Path, spark: object) -> None:
    from moldau.pipelines.supervision.app_file import load_app

    (example,) = re.findall(r"```sql\n(.*?)```", Path("docs/sql-queries.md").read_text(), re.S)
    path = tmp_path / "guide.sql"
    path.write_text(
        "CREATE STREAM orders (id STRING KEY, amount DOUBLE) WITH (topic='orders');"
        f"CREATE STREAM payments (id STRING KEY, method STRING) WITH (topic='payments');{example}"
    )
    (query,) = load_app(str(path)).queries
    assert (query.topic, query.mode) == ("settled", "append")
    assert query.plan.topics == ("orders", "payments")


@pytest.fixture
def file(tmp_path: Path, spark: object) -> str:
    path = tmp_path / "within.sql"
    path.write_text(SQL)
    return str(path)


def test_joins_are_those_of_a_batch(pipeline: Callable[..., Pipeline], file: str) -> None:
    random_ = random.Random(SEED)
    second = timedelta(seconds=1)
    met = Oracle(5 * second, 30 * second)
    talks = Oracle(10 * second, 10 * second)
    with pipeline(file) as t, Producer(t.broker.bootstrap_servers) as producer:

        def run(left: list[Row], right: list[Row]) -> None:
            for topic, rows in (("orders", left), ("paid", right)):
                for row in rows:
                    at = milliseconds(row.at) if topic == "paid" else row.at.isoformat()
                    value = {"n": row.n, "at": at}
                    producer.send(topic, json.dumps(value).encode(), row.key.encode()).result()
            for topic, rows in (("asked", left), ("told", right)):
                for row in rows:
                    value = json.dumps({"n": row.n}).encode()
                    at_ms = milliseconds(row.at)
                    producer.send(topic, value, row.key.encode(), timestamp_ms=at_ms).result()
            t.run()
            for oracle in (met, talks):
                oracle.take(left, right)
            assert rows_of(t, "met") == met.results()
            assert rows_of(t, "talks") == talks.results("left", "right")

        for place in range(ROUNDS):
            run(make(random_, place, place * 100), make(random_, place, place * 100 + 50))
            # How far it has come, and what waits, is in the checkpoint.
            t.restart()
        assert met.late > 0
        waited = talks.results("left", "right")
        assert any(b is None for _, _, b in waited)
        # Time goes on when both streams say so; what has no counterpart comes once then.
        far = START + FAR
        run([Row("a", 1000, far)], [Row("a", 1001, far)])
        assert len(talks.results("left", "right")) > len(waited)
        # A result's key is that of the stream behind FROM, and its time too: no row of it is late.
        assert {each.key for each in t.records("met")} <= {b"a", b"b", b"c"}
        assert {each.key for each in t.records("talks")} <= {b"a", b"b", b"c"}
        assert sum(row["n"] for row in t.rows("in_time")) == len(met.results()) - 1
