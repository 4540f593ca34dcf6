"""The ledgers' topic at a real broker, read on by a process that keeps what it has read."""

from collections.abc import Iterator

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.pipelines.connector.kept_clients import KeptClients, kept_clients
from moldau.pipelines.connector.sink.decision_topic import CONFIGS, DecisionTopic
from moldau.pipelines.connector.sink.errors import SinkError
from moldau.pipelines.connector.sink.ledger import EMPTY, Ledger, encode
from moldau.testing.broker import Broker

NAME = "ledgers"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def clients(broker: Broker) -> Iterator[KeptClients]:
    with kept_clients({"bootstrap.servers": broker.bootstrap_servers}) as lent:
        yield lent


@pytest.fixture
def topic(clients: KeptClients) -> DecisionTopic:
    return DecisionTopic(clients, NAME)


def create(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(NAME, 1, configs=CONFIGS)


def delete(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_topics([NAME])


def write(broker: Broker, *ledgers: Ledger, key: bytes = b"query") -> None:
    """Write each in a transaction of its own, as a driver does."""
    with Producer(broker.bootstrap_servers, transactional_id=f"writer-{key!r}") as producer:
        producer.init_transactions()
        for ledger in ledgers:
            with producer.transaction():
                producer.send(NAME, encode(ledger), key, partition=0)


def claimed(*runs: str) -> Ledger:
    ledger = EMPTY
    for run in runs:
        ledger = ledger.claimed(run)
    return ledger


def test_only_the_tail_is_read(broker: Broker, topic: DecisionTopic) -> None:
    assert topic.read("query") == EMPTY
    create(broker)
    assert topic.read("query") == EMPTY
    write(broker, claimed("a"), claimed("a", "b"))
    write(broker, claimed("x"), key=b"other")
    assert topic.read("query") == claimed("a", "b")
    with broker.faults.delay("Fetch", by=0, times=None) as fetches:
        for _ in range(3):
            assert topic.read("query") == claimed("a", "b")
            assert topic.read_all("other") == claimed("x")
        assert fetches.hits == 6
    write(broker, claimed("a", "b", "c"))
    assert topic.read_all("query") == claimed("a", "b", "c")
    assert topic.read("other") == claimed("x")


def test_a_topic_that_was_created_anew_is_read_anew(broker: Broker, topic: DecisionTopic) -> None:
    create(broker)
    write(broker, claimed("old"), key=b"gone")
    write(broker, claimed("old"))
    assert topic.read("query") == claimed("old")
    delete(broker)
    assert topic.read("query") == EMPTY
    create(broker)
    # It ends where the old one has ended, so that its offsets say nothing.
    write(broker, claimed("new"), claimed("new", "newer"))
    assert topic.read("query") == claimed("new", "newer")
    assert topic.read("gone") == EMPTY
    delete(broker)
    create(broker)
    write(broker, claimed("newest"), claimed("newest"))
    assert topic.read_all("query") == claimed("newest")


def test_what_was_deleted_is_not_there(broker: Broker, topic: DecisionTopic) -> None:
    create(broker)
    write(broker, claimed("a"))
    assert topic.read("query") == claimed("a")
    resource = ConfigResource(ResourceType.TOPIC, NAME)
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs(resource, set={"cleanup.policy": "delete"})
        assert admin.delete_records({TopicPartition(NAME, 0): -1}) == {(NAME, 0): 2}
    assert topic.read("query") == EMPTY
    write(broker, claimed("b"))
    assert topic.read("query") == claimed("b")


def test_an_open_transaction_is_waited_for_by_who_must_know(
    broker: Broker, topic: DecisionTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker)
    write(broker, claimed("a"))
    with Producer(broker.bootstrap_servers, transactional_id="other") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(NAME, b"held up", b"other", partition=0).result()
        write(broker, claimed("a", "b"))
        assert topic.read("query") == claimed("a")
        monkeypatch.setattr("moldau.pipelines.connector.sink.decision_topic.READ_SECONDS_MAX", 0.2)
        with pytest.raises(SinkError, match="an open transaction holds up offset"):
            topic.read_all("query")
        assert topic.read("query") == claimed("a")
        producer.abort_transaction()
    assert topic.read_all("query") == claimed("a", "b")
    assert topic.read_all("other") == EMPTY


def test_a_broker_that_was_started_again_is_read(broker: Broker, topic: DecisionTopic) -> None:
    create(broker)
    write(broker, claimed("a"))
    assert topic.read("query") == claimed("a")
    broker.restart()
    assert topic.read("query") == claimed("a")
    write(broker, claimed("a", "b"))
    broker.faults.drop_response("Fetch")
    assert topic.read_all("query") == claimed("a", "b")
