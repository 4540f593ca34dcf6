"""One broker for all tests with other people's clients; each test has topics of its own."""

from collections.abc import Iterator

import pytest

from tests.conformance.brokers import RunningBroker, run_broker
from tests.wire import Wire


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with run_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[Wire]:
    with Wire(broker.host, broker.port) as connection:
        yield connection
