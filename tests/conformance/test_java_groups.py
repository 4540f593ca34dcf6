"""Kafka's own client, 4.4.0: groups of all protocols, share groups and transactions."""

from collections.abc import Iterator

import pytest

from moldau._native.records import Record
from tests.conformance import jars
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.programs import Program
from tests.wire import Wire

PARTITIONS = 6
TIME = 1_700_000_000_000
EVERY_PROTOCOL = ("eager", "cooperative", "consumer")


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


@pytest.fixture(scope="module")
def java(broker: RunningBroker) -> Iterator[Program]:
    program = Program(jars.command("Groups"), broker.bootstrap_servers)
    yield program
    program.close()


def fill(wire: Wire, topic: str, count: int = 50) -> None:
    """Let each partition have so many records."""
    wire.create_topic(topic, PARTITIONS)
    records = [Record(n, TIME + n, None, b"%d" % n, []) for n in range(count)]
    for partition in range(PARTITIONS):
        assert wire.produce(topic, records, partition).error_code == 0


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_members_come_and_go(java: Program, wire: Wire, protocol: str) -> None:
    topic = f"java-come-and-go-{protocol}"
    fill(wire, topic)
    assert java.ask("share-out", topic, protocol, 300) == ["lost\t0", "read\t300"]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_offsets_and_their_metadata(java: Program, wire: Wire, protocol: str) -> None:
    topic = f"java-metadata-{protocol}"
    fill(wire, topic, 10)
    assert java.ask("metadata", topic, protocol) == [
        f"{topic}-0\t7 Optional[0] words: ž",
        f"{topic}-1\t0 Optional.empty ",
        f"{topic}-2\tnone",
    ]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_pattern_finds_topics(java: Program, protocol: str) -> None:
    topic = f"java-pattern-{protocol}"
    assert java.ask("pattern", topic, protocol) == [f"{topic}-1", f"{topic}-2"]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_static_member_comes_back(java: Program, wire: Wire, protocol: str) -> None:
    topic = f"java-static-{protocol}"
    fill(wire, topic, 1)
    assert java.ask("static", topic, protocol) == ["same\ttrue", "noticed\t0"]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_consumes_transforms_and_produces(java: Program, wire: Wire, protocol: str) -> None:
    topic = f"java-transform-{protocol}"
    fill(wire, topic, 40)
    wire.create_topic(f"{topic}-copy")
    words = ("transform", topic, f"{topic}-copy", protocol, 40 * PARTITIONS)
    assert java.ask(*words) == [f"copied\t{40 * PARTITIONS}", "twice\t0"]


def test_a_second_producer_fences_the_first(java: Program, wire: Wire) -> None:
    wire.create_topic("java-fence")
    assert java.ask("fence", "java-fence") == ["fenced"]


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_shares(java: Program, wire: Wire, mode: str) -> None:
    topic = f"java-queue-{mode}"
    fill(wire, topic, 20)
    again = int(mode == "explicit")
    assert java.ask("queue", topic, mode, 20 * PARTITIONS) == [
        f"read\t{20 * PARTITIONS}",
        f"twice\t{again}",
        f"deliveries\t{1 + again}",
    ]


def test_administers_groups_and_transactions(java: Program, wire: Wire) -> None:
    topic = "java-administered"
    fill(wire, topic, 5)
    assert java.ask("administer", topic) == [
        "group\tStable range 1",
        "listed\tconsumer",
        f"transaction\tOngoing [{topic}-0]",
        "active\t1",
        "transactions\t[Ongoing]",
        "fenced",
        "offset\t3",
        "altered\t1",
        "left\t{}",
    ]
