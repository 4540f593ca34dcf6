"""The SQL server at Apache Kafka: the catalog's topic, one owner, and a takeover."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.sql.catalog.topic import CatalogLostError, CatalogTopic
from tests.commands import moldau
from tests.conformance.apache_kafka import apache_kafka
from tests.sql_servers import check_takeover, sql_process


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
