"""A broker's settings from a file and the command line."""

import pytest

from moldau.metadata.settings.load import load_broker_settings


def test_nothing_is_enough() -> None:
    loaded = load_broker_settings()
    assert loaded.settings is not None
    assert (loaded.static, loaded.warnings, loaded.errors) == ({}, (), ())


def test_assignments_win_over_the_file() -> None:
    loaded = load_broker_settings(
        "num.partitions=2\nbroker.rack=a\n", assignments=["num.partitions=3", "durability = memory"]
    )
    assert loaded.settings is not None
    assert loaded.settings.num_partitions == 3
    assert loaded.settings.broker_rack == "a"
    assert loaded.settings.durability == "memory"
    assert loaded.static["num.partitions"] == "3"


def test_kafkas_own_example_file_starts_a_broker() -> None:
    # The settings of the file that Kafka is shipped with.
    loaded = load_broker_settings(
        """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
"""
    )
    assert loaded.errors == ()
    assert loaded.settings is not None
    assert loaded.warnings == (
        (
            "server.properties:4: controller.quorum.bootstrap.servers has no effect:"
            " this node is the only voter; others come with clusters"
        ),
    )


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("num.partitons=3", "f:1: num.partitons is not a setting; did you mean num.partitions?"),
        ("qqqq=3", "f:1: qqqq is not a setting"),
        ("zookeeper.connect=a:1", "f:1: zookeeper.connect has no effect: Kafka 4 removed it"),
        (
            "num.network.threads=16",
            (
                "f:1: num.network.threads has no effect: one event loop serves a broker; for more"
                " cores, start more brokers"
            ),
        ),
        (
            "listener.name.a.max.connections=3",
            (
                "f:1: listener.name.a.max.connections has no effect: listeners have no settings of"
                " their own yet"
            ),
        ),
    ],
)
def test_what_has_no_effect_is_a_warning(text: str, warning: str) -> None:
    loaded = load_broker_settings(text, file="f")
    assert loaded.warnings == (warning,)
    assert loaded.settings is not None


def test_a_setting_without_effect_at_its_default_is_none() -> None:
    assert load_broker_settings("num.network.threads=3").warnings == ()


def test_all_bad_values_are_named_with_their_places() -> None:
    loaded = load_broker_settings(
        "a=1\nnum.partitions=0\nlog.cleanup.policy=shred\n", file="f", assignments=["node.id=x"]
    )
    assert loaded.settings is None
    assert loaded.errors == (
        "f:2: num.partitions: '0' is not allowed; it must be at least 1",
        (
            "f:3: log.cleanup.policy: 'shred' is not allowed; it must be a list of compact, delete,"
            " or empty"
        ),
        "--set: node.id: 'x' is not allowed; it must be a whole number of 32 bits",
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("node.id=1\nbroker.id=2", "broker.id: 2 is not node.id, which is 1"),
        ("process.roles=broker", "process.roles: it must be broker,controller: a node is both"),
        ("controller.quorum.voters=7@a:1", "controller.quorum.voters: this node, 1, must be the"),
        ("authorizer.class.name=x", "authorizer.class.name: there is no authorizer yet"),
        ("log.roll.ms=0", "log.roll.ms: 0 is not allowed; it must be at least 1"),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms: -1 is not allowed"),
        ("log.retention.ms=0", "log.retention.ms: 0 is not allowed"),
        ("log.cleaner.dedupe.buffer.size=1", "log.cleaner.dedupe.buffer.size: 1 is not allowed"),
        ("queued.max.request.bytes=5", "queued.max.request.bytes: 5 is less than socket.request"),
        ("max.connections.per.ip=0", "max.connections.per.ip: 0 lets nobody in"),
        ("max.connections.per.ip.overrides=a", "max.connections.per.ip.overrides: 'a' is not host"),
        ("log.cleaner.min.compaction.lag.ms=9\nlog.cleaner.max.compaction.lag.ms=8", "min.comp"),
        ("listeners=here", "listeners: 'here' is not a listener"),
        ("a=\\u1", "server.properties: line 1: "),
    ],
)
def test_what_cannot_be_together_is_an_error(text: str, error: str) -> None:
    loaded = load_broker_settings(text)
    assert loaded.settings is None
    assert [line.startswith(error) for line in loaded.errors] == [True], loaded.errors


@pytest.mark.parametrize("assignment", ["x", "=x", " =1"])
def test_assignment_without_a_name_or_value(assignment: str) -> None:
    loaded = load_broker_settings(assignments=[assignment])
    assert loaded.errors == (f"--set {assignment}: write name=value",)
