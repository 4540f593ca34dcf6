"""Persistent queries, one by one: they run, fail alone, stop, go on, and are forgotten."""

import json
from pathlib import Path

from moldau import Admin
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import PersistentQuery, Verb
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateAs
from moldau.pipelines.sql.ports import RunState
from moldau.pipelines.sql.relations import Column
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.spark.runner import SparkRunner
from moldau.testing.broker import Broker
from tests.spark.reading import read
from tests.spark.sql_service import create, send, snapshot_of, wait_for

DECLARED = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE) WITH (topic='r-orders');
CREATE STREAM broken (id STRING KEY, amount DOUBLE) WITH (topic='r-broken');
"""
LARGE = (
    "CREATE STREAM large WITH (topic='r-large') AS SELECT id, amount FROM orders WHERE amount > 1"
)
COUNTS = (
    "CREATE TABLE counts WITH (topic='r-counts') AS "
    "SELECT user, count(*) AS n FROM orders GROUP BY user"
)
FAILING = "CREATE STREAM fails WITH (topic='r-fails') AS SELECT * FROM broken"


def persistent(number: int, statement: str, created_ms: int = 1) -> PersistentQuery:
    (parsed,) = parse(statement)
    assert isinstance(parsed, CreateAs)
    sources = tuple(each.name for each in parsed.query.tables)
    name = f"CSAS_{number}"
    verb = Verb.CREATE_STREAM
    return PersistentQuery(name, verb, statement, parsed.name, sources, created_ms)


def values(broker: Broker, topic: str) -> list[dict[str, object]]:
    return [json.loads(each.value or b"null") for each in read(broker.bootstrap_servers, topic)]


def committed(broker: Broker, group: str) -> list[int]:
    with Admin(broker.bootstrap_servers) as admin:
        return [each.offset for each in admin.list_group_offsets(group).values()]


def test_queries_run_fail_stop_and_go_on(broker: Broker, spark: object, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, "r-orders", "r-broken", "r-large", "r-fails")
    snapshot = snapshot_of(DECLARED)
    send(servers, "r-orders", ("o1", {"user": "ann", "amount": 2.5}), ("o2", {"amount": 1}))
    send(servers, "r-broken", ("x", {"amount": "much"}))
    runner = SparkRunner("shop", servers, checkpoints=str(tmp_path))
    try:
        for number, statement in enumerate((LARGE, COUNTS, FAILING)):
            runner.start(persistent(number, statement), snapshot)
        wait_for(lambda: runner.status("CSAS_2").state is RunState.FAILED, "failure")
        assert "r-broken" in str(runner.status("CSAS_2").last_error)
        wait_for(lambda: values(broker, "r-large"), "a row")
        with Admin(servers) as admin:
            wait_for(lambda: "r-counts" in admin.list_topics(), "a topic")
        wait_for(lambda: values(broker, "r-counts") == [{"user": "ann", "n": 1}], "a count")
        wait_for(lambda: runner.status("CSAS_0").lag == 0, "no lag")
        assert runner.status("CSAS_0").state is RunState.RUNNING
        assert runner.status("CSAS_0").last_error is None

        runner.stop("CSAS_0")
        send(servers, "r-orders", ("o3", {"user": "ann", "amount": 7}))
        wait_for(lambda: len(values(broker, "r-counts")) == 2, "the others going on")
        runner.start(persistent(0, LARGE), snapshot)
        wait_for(lambda: len(values(broker, "r-large")) == 2, "going on")
        wait_for(lambda: committed(broker, "moldau-shop.CSAS_0") == [3], "the group being told")
        assert committed(broker, "moldau-CSAS_0") == [], "another service may have the same id"
    finally:
        runner.close()
    assert values(broker, "r-large") == [{"id": "o1", "amount": 2.5}, {"id": "o3", "amount": 7.0}]

    assert (tmp_path / "1/shop/CSAS_0/offsets").is_dir()
    runner.delete_checkpoint(persistent(0, LARGE, created_ms=2))
    assert (tmp_path / "1/shop/CSAS_0/offsets").is_dir(), "that was another one's"
    runner.delete_checkpoint(persistent(0, LARGE))
    assert not (tmp_path / "1/shop/CSAS_0").exists()
    (tmp_path / "3/shop/CSAS_0").mkdir(parents=True)
    runner.delete_checkpoint(persistent(0, LARGE, created_ms=3))
    assert not (tmp_path / "3").exists(), "nothing is left of it"


def test_a_record_is_a_dead_letter_once_however_many_queries_read_it(
    broker: Broker, spark: object, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    create(servers, "l-orders", "l-large", "l-all", "l-kept")
    snapshot = snapshot_of(
        DECLARED.replace("(topic='r-orders'", "(topic='l-orders', on_error='dead-letter'").replace(
            "(topic='r-broken'", "(topic='l-orders', on_error='skip'"
        )
    )
    statements = (
        LARGE.replace("r-large", "l-large"),
        "CREATE STREAM every WITH (topic='l-all') AS SELECT * FROM orders",
        "CREATE STREAM kept WITH (topic='l-kept') AS SELECT * FROM broken",
    )
    bad = {"amount": "much"}
    send(servers, "l-orders", ("o1", {"amount": 2}), ("o2", bad), ("o3", {"amount": 3}))
    letters, name = "letters.dead-letters", "letters.dead-letters.l-orders"
    runner = SparkRunner("letters", servers, checkpoints=str(tmp_path))
    try:
        for number, statement in enumerate(statements):
            runner.start(persistent(number, statement), snapshot)
        for topic in ("l-large", "l-all", "l-kept"):
            wait_for(lambda topic=topic: len(values(broker, topic)) == 2, "the good ones")
        with Admin(servers) as admin:
            wait_for(lambda: letters in admin.list_topics(), "a topic")
        wait_for(lambda: values(broker, letters) == [bad], "a letter")

        def counted(number: int) -> tuple[int | None, int | None]:
            status = runner.status(f"CSAS_{number}")
            return status.skipped, status.dead_lettered

        wait_for(lambda: counted(0) == counted(1) == (0, 1), "letters counted")
        wait_for(lambda: counted(2) == (1, 0), "skipped ones counted")
        # They come as long as a query reads what they are of.
        runner.stop("CSAS_0")
        send(servers, "l-orders", ("o4", bad))
        wait_for(lambda: values(broker, letters) == [bad, bad], "another letter")
        runner.stop("CSAS_1")
        send(servers, "l-orders", ("o5", bad))
        wait_for(lambda: counted(2) == (3, 0), "skipped ones counted")
        assert values(broker, letters) == [bad, bad]
        runner.start(persistent(1, statements[1]), snapshot)
        wait_for(lambda: values(broker, letters) == [bad] * 3, "going on")
    finally:
        runner.close()
    assert (tmp_path / "0/letters" / name / "offsets").is_dir()
    runner.delete_letters(snapshot.definitions["orders"])
    assert not (tmp_path / "0").exists()


def test_a_checkpoint_is_not_that_of_a_later_query_of_the_same_id(
    broker: Broker, spark: object, tmp_path: Path
) -> None:
    """The catalog's topic was deleted by hand, and ids begin with 1 again."""
    servers = broker.bootstrap_servers
    create(servers, "again-orders", "again-large")
    snapshot = snapshot_of(DECLARED.replace("r-orders", "again-orders"))
    statement = LARGE.replace("r-large", "again-large")
    send(servers, "again-orders", ("o1", {"user": "ann", "amount": 2.5}))
    for created_ms in (1, 2):
        runner = SparkRunner("shop", servers, checkpoints=str(tmp_path))
        try:
            runner.start(persistent(0, statement, created_ms), snapshot)
            rows = [{"id": "o1", "amount": 2.5}] * created_ms
            wait_for(lambda rows=rows: values(broker, "again-large") == rows, "a row")
        finally:
            runner.close()


def test_a_plan_has_columns_and_lines(spark: object) -> None:
    runner = SparkRunner("shop", "localhost:1")
    (statement,) = parse(COUNTS)
    assert isinstance(statement, CreateAs)
    plan = runner.plan(statement, snapshot_of(DECLARED), Session(), Asker())
    assert plan.columns == (Column("user", "string", is_key=True), Column("n", "bigint"))
    assert plan.text.splitlines() == [
        "Spark reads r-orders, as they grow",
        "State: one row for each group",
        "Every group is kept for ever: there is no window with a watermark",
        "Emits every change",
    ]
