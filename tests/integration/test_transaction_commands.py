"""`moldau transactions` against a broker of ours, and `moldau groups` for share groups."""

import json
from collections.abc import Iterator

import pytest

import moldau
from tests.commands import moldau as command
from tests.nodes import RunningNode


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    node = RunningNode("--memory")
    with moldau.Admin(node.bootstrap_servers) as admin:
        admin.create_topic("clicks", 1)
    yield node.bootstrap_servers
    node.kill()


def rows(server: str, *words: str) -> list[dict[str, object]]:
    done = command(*words, "--json", "-b", server)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_open_transaction(server: str) -> None:
    with moldau.Producer(server, transactional_id="payments") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("clicks", b"1", partition=0)
        producer.flush()
        [row] = rows(server, "transactions", "list", "--state", "Ongoing")
        assert row["id"] == "payments"
        [row] = rows(server, "transactions", "describe", "payments")
        assert (row["state"], row["partitions"]) == ("Ongoing", ["clicks-0"])
        [row] = rows(server, "transactions", "producers", "clicks:0", "--open")
        assert (row["partition"], row["open_since"]) == (0, 0)
        assert rows(server, "transactions", "hanging", "clicks", "--idle", "0s") == []
        assert rows(server, "transactions", "abort", "payments") == [
            {"id": "payments", "aborted": True}
        ]
        assert rows(server, "transactions", "producers", "clicks", "--open") == []
        with pytest.raises(moldau.errors.ClientError):
            producer.commit_transaction()


def test_ids_that_there_are_not(server: str) -> None:
    done = command("transactions", "describe", "absent", "-b", server)
    assert done.returncode == 1
    assert done.stderr.startswith("moldau: transactional id absent: TRANSACTIONAL_ID_NOT_FOUND")


def test_a_share_group(server: str) -> None:
    with moldau.Admin(server) as admin:
        admin.create_topic("orders", 1)
        group = moldau.ConfigResource(moldau.ResourceType.GROUP, "bakers")
        admin.alter_configs(group, set={"share.auto.offset.reset": "earliest"})
    with moldau.Producer(server) as producer:
        producer.send("orders", b"loaf")
    with moldau.ShareConsumer(server, group_id="bakers") as consumer:
        consumer.subscribe("orders")
        while not consumer.poll(timeout_ms=500):
            pass
        [row] = rows(server, "groups", "describe", "bakers")
        assert (row["type"], row["state"], len(list(row["members"]))) == ("share", "Stable", 1)
        done = command("groups", "reset", "bakers", "--to", "earliest", "-b", server)
        assert "bakers is Stable, with 1 member: stop it first" in done.stderr
    [row] = rows(server, "groups", "reset", "bakers", "--to", "latest", "--execute")
    assert row["to"] == 1
    [row] = rows(server, "groups", "describe", "bakers")
    assert row["offsets"] == [{"topic": "orders", "partition": 0, "start_offset": 1, "lag": 0}]
    assert rows(server, "groups", "delete-offsets", "bakers", "--topic", "orders")
    assert rows(server, "groups", "delete", "bakers") == [{"group": "bakers", "deleted": True}]
