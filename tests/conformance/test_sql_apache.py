"""SQL at Apache Kafka: a server, its catalog and its takeover, small questions, and views."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau import Admin, Producer
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.topic import CatalogLostError, CatalogTopic
from moldau.pipelines.sql.local.answering import LocalEngine
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.views.view import View
from tests.commands import moldau
from tests.conformance.apache_kafka import apache_kafka
from tests.sql_servers import DEADLINE_SECONDS, check_takeover, sql_process, wait_until

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With Kafka's own settings: a group's first member waits for others, for three seconds."""
    with apache_kafka(tmp_path_factory.mktemp("kafka"), {}) as kafka:
        yield f"127.0.0.1:{kafka.port}"


def test_a_killed_server_is_replaced(servers: str) -> None:
    with sql_process(servers) as process:
        check_takeover(servers, process)


def test_a_server_that_was_replaced_writes_nothing_more(servers: str) -> None:
    with CatalogTopic(servers, "fencing") as old, CatalogTopic(servers, "fencing") as new:
        with pytest.raises(CatalogLostError, match="another server writes to _moldau_sql_fencing"):
            old.append([("relation/a", {"of": "the old one"})])
        new.append([("relation/a", {"of": "the new one"})])
        assert list(new.read()) == [("relation/a", {"of": "the new one"})]


def test_a_shell_with_a_server_inside(servers: str, tmp_path: Path) -> None:
    done = moldau(
        "sql",
        "-b",
        servers,
        "--service",
        "shell",
        "-e",
        "CREATE TABLE people (user STRING PRIMARY KEY, city STRING) WITH (partitions=1);"
        "INSERT INTO people VALUES ('ann', 'Praha'), ('bob', NULL), ('ann', 'Brno');"
        "SELECT user, city FROM people ORDER BY user;"
        "SELECT city FROM people WHERE user = 'ann';"
        "DROP TABLE people DELETE TOPIC;",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Table people created",
        "3 rows inserted into people",
        "USER  CITY",
        "ann   Brno",
        "bob   NULL",
        "CITY",
        "Brno",
        "Table people dropped; topic people deleted",
    ]
    assert "view of people, caught up" in done.stderr


def transact(
    producer: Producer,
    topic: str,
    records: dict[str, str | None],
    *,
    is_committed: bool = True,
    timestamp_ms: int | None = None,
    partition: int = 0,
) -> None:
    """Write cities of users, of which None deletes."""
    producer.begin_transaction()
    for user, city in records.items():
        value = None if city is None else json.dumps({"city": city}).encode()
        place = {"partition": partition, "timestamp_ms": timestamp_ms}
        producer.send(topic, value, user.encode(), **place)
    producer.flush()
    (producer.commit_transaction if is_committed else producer.abort_transaction)()


def test_small_questions(servers: str) -> None:
    columns = (Column("user", "string", is_key=True), Column("city", "string"))
    catalog = {
        name: Relation(name, RelationKind.TABLE, name, columns) for name in ("towns", "kept")
    }
    engine = LocalEngine({"bootstrap.servers": servers})

    def towns(query: str) -> dict[object, object]:
        found = engine.answer(query, catalog).rows.to_pylist()
        return {row["user"]: row["city"] for row in found}

    compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": DAY_MS}
    with Admin(servers) as admin, Producer(servers, transactional_id="towns") as producer:
        admin.create_topic("towns", 2, configs={"retention.ms": -1})
        admin.create_topic("kept", configs=compacted)
        producer.init_transactions()
        transact(producer, "towns", {"ann": "Brno", "bob": "Brno"}, timestamp_ms=1_000)
        transact(producer, "towns", {"ann": "aborted"}, is_committed=False, timestamp_ms=1_000)
        transact(producer, "towns", {"ann": "Praha", "bob": None}, timestamp_ms=DAY_MS)
        transact(producer, "towns", {"eva": "Plzeň"}, timestamp_ms=DAY_MS, partition=1)
        # Without transactions: the end of one is a record of now.
        with Producer(servers) as plain:
            for city in (b'{"city": "Brno"}', b'{"city": "Praha"}'):
                plain.send("kept", city, b"ann", timestamp_ms=1_000)
        producer.begin_transaction()
        producer.send("towns", b'{"city": "open"}', b"ann", partition=0).result()
        assert towns("SELECT * FROM towns") == {"ann": "Praha", "eva": "Plzeň"}
        producer.abort_transaction()
        before = "SELECT * FROM towns TIMESTAMP AS OF '1970-01-02 00:00:00'"
        assert towns(before) == {"ann": "Brno", "bob": "Brno"}
        # Two records and the end of their transaction; then one that nobody sees, and its end.
        version = """SELECT * FROM towns VERSION AS OF '{"0":%d,"1":0}'"""
        assert towns(version % 6) == {"ann": "Praha", "bob": "Brno"}
        with pytest.raises(
            PipelineError, match=r"min\.compaction\.lag\.ms=86400000: compaction may"
        ):
            towns("""SELECT * FROM kept VERSION AS OF '{"0":1}'""")
        admin.delete_records({("towns", 0): 3})
        with pytest.raises(PipelineError, match="towns-0 begins at offset 3"):
            towns(version % 2)


def test_a_view_follows(servers: str, tmp_path: Path) -> None:
    said: list[str] = []

    def view() -> View:
        config = {"bootstrap.servers": servers}
        return View("seats", {"user": "string"}, tmp_path, config, say=said.append)

    def rows(of: View) -> dict[str, object]:
        assert of.wait_until_caught_up(DEADLINE_SECONDS), of.progress
        found = of.scan(100)
        assert found.caught_up
        return {row.key["user"]: json.loads(row.value)["city"] for row in found.rows}

    with Admin(servers) as admin, Producer(servers, transactional_id="seats") as producer:
        admin.create_topic("seats", 1)
        producer.init_transactions()
        transact(producer, "seats", {"ann": "Brno", "bob": "Brno"})
        transact(producer, "seats", {"ann": "aborted"}, is_committed=False)
        with view() as first:
            assert rows(first) == {"ann": "Brno", "bob": "Brno"}
            assert first.progress.positions == {0: 5}
        transact(producer, "seats", {"ann": "Praha", "bob": None})
        second = view()
        assert not second.get("ann").caught_up
        with second:
            assert rows(second) == {"ann": "Praha"}
            answer = second.get("ann")
            assert (answer.partition, answer.offset, answer.caught_up) == (0, 8, True)
            admin.create_partitions("seats", 2)
            transact(producer, "seats", {"eva": "Plzeň"}, partition=1)
            wait_until(lambda: len(second.progress.ends) == 2, "the view knows both partitions")
            assert rows(second) == {"ann": "Praha", "eva": "Plzeň"}
            assert said == []
            admin.delete_topics(["seats"])
            admin.create_topic("seats", 1)
            transact(producer, "seats", {"ann": "Písek"})
            # For a moment there may be none, which it says, too.
            another = "the topic is another one"
            wait_until(lambda: any(another in words for words in said), "the view says so")
            assert rows(second) == {"ann": "Písek"}
