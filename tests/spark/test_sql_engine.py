"""Spark's answers: what ends, what was, and what is pushed."""

import threading
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from moldau.pipelines import PipelineError
from moldau.pipelines.sql.asking import Asker, CancelledError
from moldau.pipelines.sql.local.questions import LocalQuestions
from moldau.pipelines.sql.ports import Result, ResultColumn
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.spark.engine import SparkEngine
from moldau.testing.broker import Broker
from tests.spark.sql_service import create, select_of, send, snapshot_of, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE) WITH (topic='e-orders');
CREATE TABLE users (user STRING PRIMARY KEY, city STRING, tags MAP<STRING, INT>)
  WITH (topic='e-users');
CREATE STREAM many (id STRING KEY, n INT) WITH (topic='e-many');
"""
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def ask(broker: Broker, spark: object) -> Ask:
    servers = broker.bootstrap_servers
    create(servers, "e-orders", "e-users")
    send(
        servers,
        "e-orders",
        ("o1", {"user": "ann", "amount": 2.5}),
        ("o2", {"user": "bob", "amount": 4}),
        ("o3", {"user": "ann", "amount": 1}),
    )
    send(
        servers,
        "e-users",
        ("ann", {"city": "Brno"}),
        ("bob", {"city": "Oslo"}),
        ("ann", {"city": "Prague", "tags": {"a": 1}}),
        ("bob", None),
    )
    local = LocalQuestions({"bootstrap.servers": servers})
    engine = SparkEngine("shop", servers, infer=local.infer)
    snapshot = snapshot_of(DECLARED)

    def select(text: str, asker: Asker | None = None, **settings: str) -> Result:
        session = Session.of({key.replace("_", "."): value for key, value in settings.items()})
        return engine.select(select_of(text), snapshot, session, asker or Asker())

    return select


def rows(result: Result) -> list[tuple[object, ...]]:
    return list(chain.from_iterable(result.batches))


def test_what_ends(ask: Ask) -> None:
    result = ask("SELECT user, sum(amount) AS total FROM orders GROUP BY user ORDER BY user")
    assert result.columns == (ResultColumn("user", "string"), ResultColumn("total", "double"))
    assert result.engine == "spark"
    assert rows(result) == [("ann", 3.5), ("bob", 4.0)]
    assert rows(ask("SELECT * FROM users")) == [("ann", "Prague", {"a": 1})]
    joined = ask(
        "SELECT o.id, u.user, o.user FROM orders o LEFT JOIN users u ON o.user = u.user ORDER BY 1"
    )
    assert [each.name for each in joined.columns] == ["id", "user", "user"]
    assert rows(joined) == [("o1", "ann", "ann"), ("o2", None, "bob"), ("o3", "ann", "ann")]
    with pytest.raises(PipelineError, match=r"no column cty: did you mean city\?$"):
        ask("SELECT cty FROM users")
    with pytest.raises(
        PipelineError, match=r"no column x; there are .*; the columns of topic e-us"
    ):
        ask("SELECT x FROM `e-users`")
    with pytest.raises(PipelineError, match=r"'Prague' .* cannot be cast to \"INT\""):
        rows(ask("SELECT CAST(city AS int) FROM users"))


def test_what_was(ask: Ask) -> None:
    text = """SELECT user, city FROM users VERSION AS OF '{"0":2}' ORDER BY user"""
    assert rows(ask(text)) == [("ann", "Brno"), ("bob", "Oslo")]
    assert rows(ask("SELECT * FROM orders TIMESTAMP AS OF '2020-01-01 00:00:00'")) == []
    now = rows(ask("SELECT count(*), max(rowtime) > timestamp'2020-01-01' FROM orders"))
    assert now == [(3, True)]


def test_a_batch_ends_with_whoever_asked(ask: Ask, broker: Broker, spark: "SparkSession") -> None:
    servers = broker.bootstrap_servers
    create(servers, "e-many")
    send(servers, "e-many", *((f"k{number}", {"n": number}) for number in range(1_000)))
    jobs = spark.sparkContext.statusTracker()
    # Each pair takes a part of a millisecond: all of them, minutes.
    endless = (
        "SELECT count(DISTINCT sha2(repeat(a.id, 100000 + b.n), 512)) FROM many a CROSS JOIN many b"
    )
    asker = Asker()
    batches = ask(endless, asker).batches

    def go_when_it_runs() -> None:
        wait_for(jobs.getActiveJobsIds, "the job runs")
        asker.cancel()

    going = threading.Thread(target=go_when_it_runs)
    going.start()
    with pytest.raises(CancelledError):
        next(batches)
    going.join()
    wait_for(lambda: not jobs.getActiveJobsIds(), "the job's end")
    # Whoever has gone before it begins has nothing computed.
    batches = ask(endless, asker).batches
    with pytest.raises(CancelledError):
        next(batches)
    assert not jobs.getActiveJobsIds()


def test_samples_of_topics_are_taken(ask: Ask) -> None:
    assert rows(ask("SELECT count(orders.id) FROM orders TABLESAMPLE (0 PERCENT)")) == [(0,)]
    assert len(rows(ask("SELECT o.id FROM orders TABLESAMPLE (1 ROWS) AS o"))) == 1


def test_rows_are_pushed_from_now_on_up_to_a_limit(ask: Ask, broker: Broker) -> None:
    result = ask(
        "SELECT o.id, u.city FROM orders o JOIN users u ON o.user = u.user EMIT CHANGES LIMIT 1"
    )
    send(broker.bootstrap_servers, "e-orders", ("o4", {"user": "ann", "amount": 9}))
    assert rows(result) == [("o4", "Prague")]


def test_pairs_of_two_streams_are_pushed(ask: Ask, broker: Broker) -> None:
    result = ask(
        "SELECT a.id, b.amount FROM orders a LEFT JOIN orders b WITHIN 1 HOUR GRACE PERIOD 1 DAY "
        "ON a.id = b.id EMIT CHANGES LIMIT 1"
    )
    send(broker.bootstrap_servers, "e-orders", ("o9", {"user": "eva", "amount": 8}))
    assert rows(result) == [("o9", 8.0)]


def test_whoever_goes_ends_it(ask: Ask) -> None:
    asker = Asker()
    result = ask(
        "SELECT user, count(*) AS n FROM orders WHERE id < 'o4' GROUP BY user EMIT CHANGES",
        asker,
        auto_offset_reset="earliest",
    )
    found: set[tuple[object, ...]] = set()
    while len(found) < 2:
        found |= set(next(result.batches))
    assert found == {("ann", 2), ("bob", 1)}
    threading.Timer(0.1, asker.cancel).start()
    assert list(result.batches) == []


def test_groups_that_having_leaves_out_are_keys_without_values(ask: Ask) -> None:
    result = ask(
        "SELECT user AS who, sum(amount) AS total FROM orders WHERE id < 'o4' GROUP BY user "
        "HAVING total < 4 EMIT CHANGES LIMIT 2",
        auto_offset_reset="earliest",
    )
    assert sorted(rows(result), key=str) == [("ann", 3.5), ("bob", None)]


def test_a_table_pushes_its_changes(ask: Ask, broker: Broker) -> None:
    result = ask("SELECT u.user, city FROM users u WHERE city <> 'Rome' EMIT CHANGES LIMIT 3")
    send(
        broker.bootstrap_servers,
        "e-users",
        ("eva", {"city": "Ulm"}),
        ("tom", {"city": "Rome"}),
        ("eva", None),
    )
    # What is not there, or not any more, is a key without values.
    assert sorted(rows(result), key=str) == [("eva", "Ulm"), ("eva", None), ("tom", None)]
