"""`moldau pipeline run --views-port`: an app's tables, asked while it runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau import Producer
from moldau.pipelines import App
from moldau.pipelines.sql.lookups.kept_views import KeptViews
from moldau.pipelines.sql.relations import Column, Kind, Relation
from moldau.pipelines.streams.lookup import Lookup
from moldau.testing.broker import Broker
from tests.commands import moldau
from tests.served import served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = """
from moldau.pipelines import App

app = App("viewed", bootstrap="localhost:9092")
users = app.table("users", key="user string", schema="city string")
orders = app.stream("orders", schema="user string, amount double")
app.to(app.join(orders, users, on="user", how="left"), "joined")
"""


def test_a_table_is_asked_while_its_app_runs(tmp_path: Path) -> None:
    file = tmp_path / "viewed.py"
    file.write_text(APP)
    with Broker() as broker:
        for topic in ("users", "orders"):
            broker.create_topic(topic, partitions=1)
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("users", b'{"city": "Praha"}', b"ann").result()
        words = ["pipeline", "run", str(file), "-b", broker.bootstrap_servers, "--views-port", "0"]
        with served(*words, "--json", folder=tmp_path, ready="views: ") as app:
            server = app.address.partition("/views/")[0]
            asked = moldau("pipeline", "get", "users", "ann", "--server", server)
            assert asked.stdout.splitlines() == ["USER  CITY", "ann   Praha"], asked.stderr
            assert "caught up; offsets by partition {0: 1}" in asked.stderr


def test_get_asks_the_view_of_its_process(
    spark: "SparkSession",
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker.create_topic(topic, partitions=1)
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b'{"city": "Praha"}', b"ann").result()
    app = App("viewed", broker.bootstrap_servers, checkpoints=str(tmp_path / "checkpoints"))
    table = app.table(topic, key="user string", schema="city string")
    assert table.get("ann") == {"city": "Praha"}, "read from the topic"
    monkeypatch.setattr(Lookup, "_find", lambda *_: pytest.fail("the topic is read"))
    columns = (Column("user", "string", is_key=True), Column("city", "string"))
    relation = Relation(topic, Kind.TABLE, topic, columns)
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
