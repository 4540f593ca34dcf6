"""A node as its users have it: a process that starts, serves, stops, crashes and comes back."""

import subprocess
from pathlib import Path

import pytest

from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.integration.nodes import Client, running
from tests.nodes import MOLDAU, STOP_SECONDS_MAX

BROKER, TOPIC = 4, 2


def folders(data: Path, topic: str) -> list[str]:
    """Return a topic's folders, whatever they are there for."""
    return sorted(path.name for path in data.iterdir() if path.name.startswith(f"{topic}-"))


def refused(*arguments: object) -> str:
    """Return the lines of a start that is refused."""
    done = subprocess.run(
        [*MOLDAU, "start", "--port", "0", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS_MAX,
        check=False,
    )
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_restart_keeps_topics_and_records(tmp_path: Path) -> None:
    with running("--data", tmp_path / "data") as node, Client(node) as client:
        assert client.create("rivers", partitions=3, retention_ms="1000000000000") == [0]
        assert client.produce("rivers", b"Vltava", b"Labe", partition=1) == 0
        first = client.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    with running("--data", tmp_path / "data") as node, Client(node) as client:
        assert client.topics() == {"rivers": 3}
        assert client.fetch("rivers", partition=1) == [b"Vltava", b"Labe"]
        assert client.produce("rivers", b"Sazava", partition=1) == 2
        second = client.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    assert second.cluster_id == first.cluster_id
    assert second.brokers[0].port == node.address[1]


def test_a_crash_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    with running("--data", tmp_path / "data") as node, Client(node) as client:
        client.create("rivers")
        for number in range(20):
            assert client.produce("rivers", b"%d" % number) == number
        node.kill()
    with running("--data", tmp_path / "data") as node, Client(node) as client:
        assert client.fetch("rivers") == [b"%d" % number for number in range(20)]
        assert client.produce("rivers", b"20") == 20


def test_in_memory_nothing_is_kept(tmp_path: Path) -> None:
    with running("--memory", "--data", tmp_path / "data") as node, Client(node) as client:
        client.create("rivers")
        client.produce("rivers", b"Vltava")
        assert client.fetch("rivers") == [b"Vltava"]
    assert not (tmp_path / "data").exists()
    with running("--memory", "--data", tmp_path / "data") as node, Client(node) as client:
        assert client.topics() == {}


def test_partitions_cost_nothing_on_the_disk_until_they_are_used(tmp_path: Path) -> None:
    with running("--data", tmp_path) as node, Client(node) as client:
        client.create("rivers", partitions=50)
        assert folders(tmp_path, "rivers") == []
        client.produce("rivers", b"Vltava", partition=7)
        assert folders(tmp_path, "rivers") == ["rivers-7"]


def test_deletes_are_finished_after_a_restart(tmp_path: Path) -> None:
    with running("--data", tmp_path) as node, Client(node) as client:
        client.create("rivers", partitions=2, file_delete_delay_ms="3600000")
        for partition in range(2):
            client.produce("rivers", b"Vltava", partition=partition)
        assert client.delete("rivers") == [0]
        assert client.topics() == {}
        # The name is free at once.
        assert client.create("rivers") == [0]
        assert client.fetch("rivers") == []
        client.produce("rivers", b"Labe")
        assert [name for name in folders(tmp_path, "rivers") if name.endswith("-delete")]
    with running("--data", tmp_path) as node, Client(node) as client:
        assert client.fetch("rivers") == [b"Labe"]
    assert folders(tmp_path, "rivers") == ["rivers-0"]


def test_a_delete_that_a_crash_cut_short_is_finished(tmp_path: Path) -> None:
    with running("--data", tmp_path) as node, Client(node) as client:
        client.create("rivers")
        client.produce("rivers", b"Vltava")
        node.kill()
    with running("--data", tmp_path) as node, Client(node) as client:
        client.delete("rivers")
        node.kill()
    # As if the crash had come before the folder was renamed.
    for name in folders(tmp_path, "rivers"):
        (tmp_path / name).rename(tmp_path / "rivers-0")
    with running("--data", tmp_path) as node, Client(node) as client:
        assert client.topics() == {}
        assert client.create("rivers") == [0]
        assert client.fetch("rivers") == []
    assert not [name for name in folders(tmp_path, "rivers") if name.endswith("-stray")]


def test_a_partition_that_metadata_does_not_know_is_set_aside(tmp_path: Path) -> None:
    with running("--data", tmp_path / "one") as node, Client(node) as client:
        client.create("rivers")
        client.produce("rivers", b"Vltava")
    with running("--data", tmp_path / "two") as node:
        pass
    (tmp_path / "one" / "rivers-0").rename(tmp_path / "two" / "rivers-0")
    with running("--data", tmp_path / "two") as node, Client(node) as client:
        assert client.topics() == {}
        assert "set aside" in node.stop()
    [folder] = folders(tmp_path / "two", "rivers")
    assert folder.endswith("-stray")


def test_configs_take_effect_at_once_and_stay(tmp_path: Path) -> None:
    def alter(client: Client, kind: int, name: str, key: str, value: str) -> int:
        config = AlterableConfig(name=key, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
        return answer.responses[0].error_code

    def value_of(client: Client, kind: int, name: str, key: str) -> str | None:
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=[key]
        )
        answer = client.ask(
            DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, 4
        )
        return answer.results[0].configs[0].value

    with running("--data", tmp_path) as node, Client(node) as client:
        client.create("rivers")
        assert alter(client, TOPIC, "rivers", "max.message.bytes", "100") == 0
        with pytest.raises(AssertionError, match="error_code=10"):
            client.produce("rivers", b"v" * 200)
        assert alter(client, TOPIC, "rivers", "max.message.bytes", "a lot") == (
            ErrorCode.INVALID_CONFIG
        )
        assert alter(client, BROKER, "", "message.max.bytes", "120") == 0
        client.create("lakes")
        with pytest.raises(AssertionError, match="error_code=10"):
            client.produce("lakes", b"v" * 200)
        assert alter(client, BROKER, "1", "log.retention.ms", "77777777") == 0
        assert value_of(client, TOPIC, "rivers", "retention.ms") == "77777777"
    with running("--data", tmp_path) as node, Client(node) as client:
        assert value_of(client, TOPIC, "lakes", "max.message.bytes") == "120"
        with pytest.raises(AssertionError, match="error_code=10"):
            client.produce("lakes", b"v" * 200)


def test_many_partitions_come_and_go_while_others_are_served(tmp_path: Path) -> None:
    with running("--data", tmp_path) as node, Client(node) as client, Client(node) as other:
        client.create("rivers")
        names = [f"topic{number}" for number in range(300)]
        assert set(client.create(*names, partitions=3)) == {0}
        assert set(client.create("wide", partitions=2000)) == {0}
        assert other.produce("rivers", b"Vltava") == 0
        assert len(other.topics()) == 302
        assert set(client.delete("wide", *names)) == {0}
        assert other.topics() == {"rivers": 1}
        assert other.fetch("rivers") == [b"Vltava"]


def test_a_directory_has_one_node_at_a_time(tmp_path: Path) -> None:
    with running("--data", tmp_path):
        assert "is in use by process" in refused("--data", tmp_path)


def test_a_port_that_is_in_use_is_one_line(tmp_path: Path) -> None:
    with running("--memory") as node:
        port = str(node.address[1])
        lines = refused("--data", tmp_path, "--port", port)
    assert lines.count("\n") == 1
    assert f"localhost:{port}" in lines


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda data: (data / "thesis.txt").write_text("..."), "thesis.txt"),
        (
            lambda data: (data / "meta.properties").write_text(
                "version=1\ncluster.id=MoldauMoldauMoldauMol0\nnode.id=7\n"
            ),
            "belongs to node 7",
        ),
        (lambda data: (data / "meta.properties").write_text("version=9\n"), "cannot be told"),
    ],
)
def test_a_directory_that_is_not_ours_is_one_line(tmp_path: Path, prepare, message) -> None:
    prepare(tmp_path)
    lines = refused("--data", tmp_path)
    assert lines.count("\n") == 1
    assert message in lines


def test_settings_are_checked_before_anything_is_touched(tmp_path: Path) -> None:
    lines = refused("--data", tmp_path / "data", "--set", "num.partitions=none")
    assert "--set: num.partitions: 'none' is not allowed" in lines
    assert not (tmp_path / "data").exists()
    with running("--memory", "--set", "num.partition=3") as node:
        log = node.stop()
    assert "num.partition is not a setting; did you mean num.partitions?" in log


def test_format_makes_a_directory_for_an_older_release(tmp_path: Path) -> None:
    arguments = ["format", "--data", str(tmp_path), "--release-version", "4.3"]
    for code in (0, 1):
        done = subprocess.run(
            [*MOLDAU, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=STOP_SECONDS_MAX,
        )
        assert done.returncode == code, done
    with running("--data", tmp_path) as node, Client(node) as client:
        client.create("rivers")
        assert client.produce("rivers", b"Vltava") == 0
