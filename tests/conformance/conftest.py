"""One broker for all tests with other people's clients; each test has topics of its own."""

from collections.abc import Iterator

import pytest

from tests.conformance.brokers import RunningBroker, run_apache, run_broker
from tests.wire import Wire


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with run_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


# Groups settle quickly, and the coordinators have little to load.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "3",
}


@pytest.fixture(scope="session")
def quick_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for all tests of groups and transactions: let `broker` be this one."""
    with run_broker(tmp_path_factory.mktemp("quick"), QUICK) as running:
        yield running


@pytest.fixture(scope="session")
def plain_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Apache Kafka with its own settings, for all tests of a worker that want no others."""
    with run_apache(tmp_path_factory.mktemp("kafka"), {}) as running:
        yield running


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[Wire]:
    with Wire(broker.host, broker.port) as connection:
        yield connection
