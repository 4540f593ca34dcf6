"""`moldau pipeline get`: of a server's view, and without one from the topic."""

import json
from pathlib import Path

import moldau as client
from moldau.pipelines.sql.relations import Column, Kind, Relation
from moldau.pipelines.sql.serving.view_server import ViewServer
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


def test_views_without_a_server_around_them(moldau: Broker, tmp_path: Path) -> None:
    columns = (Column("user", "string", is_key=True), Column("city", "string"))
    users = Relation("users", Kind.TABLE, "users", columns)
    moldau.create_topic("users", partitions=2)
    with client.Producer(moldau.bootstrap_servers) as producer:
        producer.send("users", b'{"city": "Praha"}', b"ann").result()
    config = {"bootstrap.servers": moldau.bootstrap_servers}
    with ViewServer([users], tmp_path, config, 0, lambda _: None) as server:
        asked = command("pipeline", "get", "Users", "ann", "--server", server.address, "--json")
        assert asked.stdout == '{"user":"ann","city":"Praha"}\n'
        assert "caught up" in asked.stderr
        wrong = command("pipeline", "get", "people", "ann", "--server", server.address)
        assert wrong.stderr == "moldau: there is no such table; there are users\n"
