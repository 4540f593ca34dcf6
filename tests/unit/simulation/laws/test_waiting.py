"""A node forgets what would end a wait: clients go on, and the laws say what waits in vain."""

from collections.abc import Callable

import pytest

from moldau.broker.broker import Broker
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.machine import GroupMachine
from moldau.simulation.laws.waiting import check_coordinators, check_fetches
from moldau.simulation.run import SimulatedRun
from moldau.transactions.machine import TransactionMachine
from moldau.transactions.state import TransactionState

pytestmark = pytest.mark.filterwarnings("ignore::moldau.client.errors.UndeliveredWarning")

Check = Callable[[Broker], None]


class ForgettingNode:
    """Has a node forget something all the time, and clients go on."""

    def __init__(self, forget: Check) -> None:
        self._forget = forget

    def begin(self, run: SimulatedRun) -> None:
        self._run = run
        run.world.after_step.append(self._step)

    def end(self, run: SimulatedRun) -> None:
        run.world.after_step.remove(self._step)

    def _step(self) -> None:
        process = self._run.node
        if process is not None and process.node is not None and process.is_serving:
            self._forget(process.node.broker)


def forget_sessions(broker: Broker) -> None:
    for shard in broker.coordinators.groups:
        assert isinstance(shard.machine, GroupMachine)
        shelf = shard.machine.shelf
        for group in shelf.groups.values():
            if isinstance(group, ConsumerGroup):
                for member_id in group.members:
                    shelf.consumers.forget(group.group_id, member_id)
    check_coordinators(broker)


def forget_timeouts(broker: Broker) -> None:
    for shard in broker.coordinators.transactions:
        assert isinstance(shard.machine, TransactionMachine)
        shelf = shard.machine.shelf
        for known in shelf.transactions.values():
            if known.state is TransactionState.ONGOING:
                shelf.deadlines[known.transactional_id] = 0.0
    check_coordinators(broker)


def forget_woken(broker: Broker) -> None:
    broker.parking._woken.clear()
    check_fetches(broker)


@pytest.mark.parametrize(
    ("forget", "clients", "law"),
    [
        (forget_sessions, ("producer-1", "member-3"), "member session"),
        (forget_timeouts, ("payer-1",), "transaction timeout"),
        (forget_woken, ("producer-1", "reader-1"), "held fetch"),
    ],
)
def test_what_waits_in_vain_is_told(forget: Check, clients: tuple[str, ...], law: str) -> None:
    outcome = SimulatedRun(1, seconds=10, clients=clients, faults=ForgettingNode(forget)).execute()
    assert outcome.violation.startswith(law)


def test_nothing_waits_in_vain() -> None:
    clients = (
        "producer-1",
        "producer-3",
        "member-1",
        "member-3",
        "payer-1",
        "reader-1",
        "sharer-1",
    )

    def check(broker: Broker) -> None:
        check_coordinators(broker)
        check_fetches(broker)

    assert (
        not SimulatedRun(1, seconds=10, clients=clients, faults=ForgettingNode(check))
        .execute()
        .violation
    )
