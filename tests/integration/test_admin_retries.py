"""What the admin asks of all brokers, where the first answer is lost."""

from collections.abc import Callable, Iterator

import pytest

from moldau import Admin
from moldau.testing.broker import Broker

ASKED: list[Callable[[Admin], object]] = [
    lambda admin: admin.list_topics(),
    lambda admin: admin.list_groups(),
    lambda admin: admin.list_transactions(),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.mark.parametrize("ask", ASKED)
def test_a_lost_answer_is_asked_for_again(broker: Broker, ask: Callable[[Admin], object]) -> None:
    with (
        Admin(broker.bootstrap_servers) as admin,
        broker.faults.drop_response("Metadata", times=2) as fault,
    ):
        assert not ask(admin)
        assert fault.hits == 2
