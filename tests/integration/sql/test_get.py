"""`moldau pipeline get`: of a server's view, and without one from the topic."""

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import moldau as client
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.sql.serving.view_server import ViewServer
from moldau.pipelines.views.announcing import announced, find_addresses
from moldau.pipelines.views.asking import find_served
from moldau.pipelines.views.client import NotThereError, ViewClient
from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.scanning import scan_key
from moldau.testing import Broker
from tests.commands import moldau as command
from tests.integration.sql.test_shell import DECLARE, serve, sql


def window(start: str, end: str) -> dict[str, object]:
    return {"user": "ann", "window": {"start": f"2026-01-01T{start}Z", "end": f"2026-01-01T{end}Z"}}


def test_with_a_server_and_without(moldau: Broker, tmp_path: Path) -> None:
    servers = moldau.bootstrap_servers
    with serve(moldau, tmp_path) as server:
        sql(server, DECLARE)
        asked = command("pipeline", "get", "users", "ann", "-b", servers)
        assert asked.stdout.splitlines() == ["USER  CITY", "ann   Brno"]
        assert asked.stderr == (f"view at {server}, caught up; offsets by partition {{0: 3}}\n")
        nobody = command("pipeline", "get", "users", "eva", "--server", server)
        assert nobody.returncode == 1
        assert "users has no row of key eva" in nobody.stderr
        wrong = command("pipeline", "get", "user", "eva", "--server", server)
        assert wrong.stderr == "moldau: there is no table user\n"
    # The catalog still knows the columns.
    scanned = command("pipeline", "get", "users", "ann", "-b", servers, "--json")
    assert scanned.stdout == '{"user":"ann","city":"Brno"}\n'
    assert scanned.stderr == "no server runs: reading the key's partition of users\n"
    # Of a topic that nobody has declared, keys are texts.
    with client.Producer(servers) as producer:
        producer.send("rivers", b"431 km", b"Vltava").result()
    river = command("pipeline", "get", "rivers", "Vltava", "-b", servers)
    assert river.stdout.splitlines() == ["KEY     VALUE", "Vltava  431 km"]


def test_windows_of_a_key_are_in_all_partitions(moldau: Broker) -> None:
    shape = KeyShape({"user": "string", "window": "struct<start: timestamp, end: timestamp>"})
    topic = moldau.topic(partitions=3)
    minutes = [("08:00:00", "08:01:00"), ("08:01:00", "08:02:00"), ("08:02:00", "08:03:00")]
    with client.Producer(moldau.bootstrap_servers) as producer:
        for number, (start, end) in enumerate(minutes):
            key = json.dumps(window(start, end)).encode()
            producer.send(topic, b"old", key, partition=number)
            producer.send(topic, b"%d" % number, key, partition=number)
        producer.send(topic, None, json.dumps(window(*minutes[0])).encode(), partition=0)
        producer.flush()
    config = {"bootstrap.servers": moldau.bootstrap_servers}
    told: list[tuple[int, int]] = []
    found = scan_key(config, topic, shape, "ann", progress=lambda *each: told.append(each))
    assert [row.value for row in found.rows] == [b"1", b"2"]
    assert found.offsets == {0: 3, 1: 2, 2: 2}
    assert told[-1] == (7, 7)
    some = scan_key(config, topic, shape, "ann", "2026-01-01T08:01:00", "2026-01-01T08:02:00")
    assert [row.value for row in some.rows] == [b"1"]


COLUMNS = (Column("user", "string", is_key=True), Column("city", "string"))
USERS = Relation("users", RelationKind.TABLE, "users", COLUMNS)


@pytest.fixture
def users(moldau: Broker) -> dict[str, object]:
    """Have a topic, and how to reach it."""
    moldau.create_topic("users", partitions=2)
    with client.Producer(moldau.bootstrap_servers) as producer:
        producer.send("users", b'{"city": "Praha"}', b"ann").result()
    return {"bootstrap.servers": moldau.bootstrap_servers}


def following() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("view of ")]


def test_views_without_a_server_around_them(users: dict[str, object], tmp_path: Path) -> None:
    tables = {"users": USERS, "people": USERS}
    with ViewServer(tables, tmp_path, users, 0, lambda _: None) as server:
        assert following() == [], "nobody has asked yet"
        asked = command("pipeline", "get", "Users", "ann", "--server", server.address, "--json")
        assert asked.stdout == '{"user":"ann","city":"Praha"}\n'
        assert "caught up" in asked.stderr
        assert following() == ["view of users"]
        by_query = command("pipeline", "get", "people", "ann", "--server", server.address, "--json")
        assert by_query.stdout == asked.stdout
        wrong = command("pipeline", "get", "rivers", "ann", "--server", server.address)
        assert wrong.stderr == "moldau: there is no such table; there are users\n"
        assert ViewClient(server.address).views() == [
            {"name": "users", "topic": "users", "key": {"user": "string"}}
        ]
    assert following() == []


def test_names_that_differ_in_case_alone_are_not_mixed_up(
    users: dict[str, object], tmp_path: Path
) -> None:
    cities, shouted = (replace(USERS, name=each, topic=each) for each in ("cities", "CITIES"))
    tables = {"cities": cities, "CITIES": shouted, "users": USERS, "Users": cities}
    with ViewServer(tables, tmp_path, users, 0, lambda _: None) as server:
        asked = ViewClient(server.address)
        assert [each["name"] for each in asked.views()] == ["users"]
        assert asked.view("Users", "ann")["rows"] == [["ann", "Praha"]]
        with pytest.raises(NotThereError, match="there are users"):
            asked.view("cities", "ann")


def test_a_port_that_is_taken_stops_nobody(users: dict[str, object], tmp_path: Path) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with ViewServer({"users": USERS}, tmp_path, users, port, said.append) as server:
            found = ViewClient(server.address).view("users", "ann")
    assert found["rows"] == [["ann", "Praha"]]
    assert said == [f"views: port {port}: Address already in use: taking another"]


def test_who_serves_views_on_this_machine_is_found(
    moldau: Broker, users: dict[str, object], tmp_path: Path
) -> None:
    words = ["pipeline", "get", "users", "ann", "-b", moldau.bootstrap_servers]
    with client.Admin(moldau.bootstrap_servers) as admin:
        cluster = admin.describe_cluster().cluster_id
    with (
        ViewServer({"users": USERS}, tmp_path, users, 0, lambda _: None) as server,
        announced(server.address, "another cluster"),
    ):
        scanned = command(*words)
        assert scanned.stderr == "no server runs: reading the key's partition of users\n"
        # A process that is gone, and its port nobody's, is no reason to stop looking.
        with announced("http://127.0.0.1:1", cluster):
            assert command(*words).stderr == scanned.stderr
            with announced(server.address, cluster):
                asked = command(*words)
                assert asked.stdout.splitlines() == ["USER  CITY", "ann   Praha"]
                assert asked.stderr.startswith(f"view at {server.address}, caught up; ")
                with client.Producer(moldau.bootstrap_servers) as producer:
                    producer.send("rivers", b"431 km", b"Vltava").result()
                river = command("pipeline", "get", "rivers", "Vltava", *words[4:])
                assert river.stdout.splitlines() == ["KEY     VALUE", "Vltava  431 km"]
                assert river.stderr == (
                    "no server has a view of it: reading the key's partition of rivers\n"
                )


def test_a_sql_server_is_found_too(moldau: Broker, tmp_path: Path) -> None:
    with serve(moldau, tmp_path) as server:
        sql(server, DECLARE)
        config = {"bootstrap.servers": moldau.bootstrap_servers}
        assert find_addresses(config) == [server]
        served = find_served([server], "users", {"user": "string"})
        assert served is not None
        assert served.find_value("ann") == (b'{"city":"Brno"}', True)
        assert served.find_value("eva") == (None, True)
        assert find_served([server], "users", {"user": "bigint"}) is None
    assert find_addresses(config) == []
