"""`moldau pipeline run`: an app's tables, asked while it runs."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau import Admin, Producer
from moldau.cli import main, pipeline_views
from moldau.pipelines import App
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.lookups.kept_views import KeptViews
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.sql.serving.view_server import ViewServer
from moldau.pipelines.sql.spark.app_tables import tables_of
from moldau.pipelines.sql.spark.file_app import load_sql_app
from moldau.pipelines.streams.lookup import Lookup
from moldau.pipelines.streams.run_options import RunOptions, run_with
from moldau.pipelines.streams.tables import Table
from moldau.pipelines.supervision import app_file, run
from moldau.pipelines.views.announcing import announced, find_announced
from moldau.pipelines.views.client import ViewClient
from moldau.testing.broker import Broker
from tests.commands import moldau
from tests.served import DEADLINE_SECONDS, served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """
from pyspark.sql import functions as F
from moldau.pipelines import App

app = App("viewed", bootstrap="localhost:9092")
users = app.table("users", key="user string", schema="city string")
orders = app.stream(
    "orders", schema="user string, amount double, at timestamp",
    event_time="at", watermark="1 minute",
)
app.to(app.join(orders.drop("at"), users, on="user", how="left"), "joined")
totals = orders.groupBy("user", F.window("at", "1 minute")).agg(F.sum("amount").alias("total"))
app.to(totals, "t-totals", key=["user", "window"], emit="changes", name="totals")
"""
SQL = """
CREATE STREAM orders (user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='1 minute');
CREATE TABLE users (user STRING PRIMARY KEY, city STRING) WITH (topic='users');
CREATE TABLE totals WITH (topic='sums') AS SELECT user, window, sum(amount) AS value
  FROM orders GROUP BY user, window(at, '1 minute');
CREATE TABLE praha AS SELECT * FROM users WHERE city = 'Praha';
"""
ORDERS = [
    b'{"user": "ann", "amount": 2.5, "at": "2026-01-01T08:00:10Z"}',
    b'{"user": "ann", "amount": 4.0, "at": "2026-01-01T08:01:10Z"}',
    b'{"user": "bob", "amount": 1.0, "at": "2026-01-01T08:01:20Z"}',
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The app's."""
    path = tmp_path / "viewed.py"
    path.write_text(APP)
    return path


@pytest.fixture
def shop() -> Iterator[Broker]:
    """A broker with what the app reads."""
    with Broker() as broker:
        for topic in ("users", "orders"):
            broker.create_topic(topic, partitions=1)
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("users", b'{"city": "Praha"}', b"ann").result()
            for order in ORDERS:
                producer.send("orders", order).result()
        yield broker


def wait_for_rows(server: ViewClient, table: str, key: str, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(server.view(table, key)["rows"]) < count:
        assert time.monotonic() < deadline, f"{table} has no {count} rows of {key}"
        time.sleep(0.2)


def test_tables_are_asked_while_their_app_runs(shop: Broker, file: Path) -> None:
    servers = shop.bootstrap_servers

    def get(*words: str) -> subprocess.CompletedProcess[str]:
        return moldau("pipeline", "get", *words, "-b", servers)

    words = ["pipeline", "run", str(file), "-b", servers, "--json"]
    with served(*words, folder=file.parent, ready="views: ") as app:
        assert "/views/TABLE?key=... of users, t-totals\n" in (file.parent / "errors").read_text()
        asked = get("users", "ann")
        assert asked.stdout.splitlines() == ["USER  CITY", "ann   Praha"], asked.stderr
        assert "caught up; offsets by partition {0: 1}" in asked.stderr
        # What it writes, too, by its topic and by its query.
        server = ViewClient(app.address.partition("/views/")[0])
        wait_for_rows(server, "totals", "ann", 2)
        asked = get("t-totals", "ann")
        assert f"view at {server.address}, caught up" in asked.stderr
        assert asked.stdout.splitlines() == [
            "USER  WINDOW                                        TOTAL",
            "ann   [2026-01-01T08:00:00Z, 2026-01-01T08:01:00Z)    2.5",
            "ann   [2026-01-01T08:01:00Z, 2026-01-01T08:02:00Z)    4.0",
        ]
        minute = ("--from", "2026-01-01T08:01", "--until", "2026-01-01T08:02")
        some = get("totals", "ann", *minute)
        assert some.stdout.splitlines() == asked.stdout.splitlines()[::2]
    assert find_announced() == []


@pytest.mark.parametrize(
    ("words", "ports"),
    [
        ([], [None]),
        (["--views-port", "7"], [7]),
        (["--no-views"], []),
        (["--once"], []),
    ],
)
def test_which_runs_serve_views(
    words: list[str], ports: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def serve(_app: object, port: int | None) -> AbstractContextManager[None]:
        asked.append(port)
        return nullcontext()

    monkeypatch.setattr(pipeline_views, "serve_views", serve)
    monkeypatch.setattr(app_file, "load_app", lambda *_: None)
    monkeypatch.setattr(run, "run_app", lambda *_args, **_options: True)
    assert main(["pipeline", "run", "viewed.py", *words]) == 0
    assert asked == ports


def test_an_app_says_what_can_be_asked_of_it(
    spark: "SparkSession", broker: Broker, tmp_path: Path
) -> None:
    app = App("described", broker.bootstrap_servers, checkpoints=str(tmp_path))
    users = app.table("users", key="user string", schema="city string")
    rows = app.stream("orders", key="id string", schema="user string, amount int, value string")
    app.to(users, "copied")
    app.to(rows.select("user", "value"), "texts", key="user", name="Texts-of-users")
    app.to(rows, "orders-too", key=["id", "user"])
    app.to(rows.select("amount"), "without-key")
    found = tables_of(app)
    assert {name: each.format for name, each in found.items()} == {
        "users": "json",
        "copied": "json",
        "texts": "string",
        "Texts-of-users": "string",
        "orders-too": "json",
    }
    described = {
        name: [f"{'*' if each.is_key else ''}{each.name} {each.type}" for each in table.columns]
        for name, table in found.items()
    }
    assert described["copied"] == described["users"] == ["*user string", "city string"]
    assert described["texts"] == described["Texts-of-users"] == ["*user string", "value string"]
    assert described["orders-too"] == [
        "*id string", "*user string", "amount int", "value string",
    ]  # fmt: skip


def test_a_file_of_sql_says_it_too(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "viewed.sql"
    file.write_text(SQL)
    with run_with(RunOptions(bootstrap=broker.bootstrap_servers, checkpoints=str(tmp_path))):
        found = tables_of(load_sql_app(str(file)))
    assert {name: [each.name for each in table.keys] for name, table in found.items()} == {
        "users": ["user"],
        "sums": ["user", "window"],
        "totals": ["user", "window"],
        "praha": ["user"],
    }
    assert [f"{each.name} {each.type}" for each in found["totals"].values] == ["value double"]
    assert [f"{each.name} {each.type}" for each in found["praha"].columns] == [
        "user string", "city string",
    ]  # fmt: skip


def table_of_ann(broker: Broker, topic: str, folder: Path) -> tuple[App, Table]:
    """Make an app with a table that has one row."""
    broker.create_topic(topic, partitions=1)
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b'{"city": "Praha"}', b"ann").result()
    app = App("viewed", broker.bootstrap_servers, checkpoints=str(folder / "checkpoints"))
    return app, app.table(topic, key="user string", schema="city string")


def test_get_asks_a_server_that_is_there(
    spark: "SparkSession",
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, table = table_of_ann(broker, topic, tmp_path)
    # Somebody else's view in this process is not at hand by another name of the broker.
    elsewhere = {"bootstrap.servers": f"localhost:{broker.port}"}
    with monkeypatch.context() as patched:
        patched.setattr(Lookup, "_find", lambda *_: pytest.fail("the topic is read"))
        with ViewServer(tables_of(app), tmp_path / "views", elsewhere, 0, lambda _: None) as server:
            assert table.get("ann", server=server.address) == {"city": "Praha"}
            with Admin(broker.bootstrap_servers) as admin:
                cluster = admin.describe_cluster().cluster_id
            with announced(server.address, cluster):
                assert table.get("ann") == {"city": "Praha"}
                assert table.get("bob") is None
        with pytest.raises(PipelineError, match="has no view of topic"):
            table.get("ann", server=server.address)
    with announced(server.address, cluster):
        assert table.get("ann") == {"city": "Praha"}, "it is gone: read from the topic"


def test_get_asks_the_view_of_its_process(
    spark: "SparkSession",
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, table = table_of_ann(broker, topic, tmp_path)
    assert table.get("ann") == {"city": "Praha"}, "read from the topic"
    monkeypatch.setattr(Lookup, "_find", lambda *_: pytest.fail("the topic is read"))
    columns = (Column("user", "string", is_key=True), Column("city", "string"))
    relation = Relation(topic, RelationKind.TABLE, topic, columns)
    views = KeptViews(tmp_path / "views", app.client_config, lambda _: None)
    views.keep([relation])
    try:
        views.get(relation, "ann")  # which waits until the view has caught up
        assert table.get("ann") == {"city": "Praha"}
        assert table.get("bob") is None
    finally:
        views.close()
    monkeypatch.undo()
    assert table.get("ann") == {"city": "Praha"}, "and again from the topic"
