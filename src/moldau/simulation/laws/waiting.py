"""All that waits has an end in sight: fetches, members' sessions, transactions' timeouts.

Clients hardly notice when one of these is forgotten: a fetch is answered at its deadline all the
same, and a member that is gone holds its partitions for good while the others go on with theirs.
"""

from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

from moldau.broker.broker import Broker
from moldau.broker.coordinators.shard import Shard, ShardState
from moldau.broker.internal_topics import OFFSETS, TRANSACTION_STATE
from moldau.broker.parking_lot import Parked
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.timers import MemberSessionTimer
from moldau.groups.machine import GroupMachine
from moldau.groups.share.group import ShareGroup
from moldau.metadata.image import ClusterImage
from moldau.simulation.laws.violation import LawViolation
from moldau.transactions.machine import TransactionMachine
from moldau.transactions.state import TransactionState

ABORT_SECONDS_MAX: Final = 5.0
"""How long after its timeout a transaction is at least being aborted."""


@runtime_checkable
class HeldFetch(Parked, Protocol):
    """A fetch that waits, as far as that is told of all of them."""

    @property
    def has_enough(self) -> bool:
        """Whether there is now what it waits for."""


def check_fetches(broker: Broker) -> None:
    """Assert that every held fetch for which there is enough was woken."""
    for replica in broker.replicas:
        for reader in replica.readers:
            if not isinstance(reader, HeldFetch) or broker.parking.is_woken(reader):
                continue
            if reader.has_enough:
                raise LawViolation(
                    "held fetch",
                    f"one of {replica.partition} has enough to read, and was not woken",
                )


def check_coordinators(broker: Broker) -> None:
    """Assert that members have sessions, and that transactions are ended when their time is up."""
    now = broker.environment.now().monotonic
    for coordinator in broker.coordinators:
        for shard in coordinator:
            if shard.state is ShardState.ACTIVE:
                for law, text in _forgotten(shard, broker.image, now):
                    raise LawViolation(law, text)


def _forgotten(shard: Shard, image: ClusterImage, now: float) -> Iterator[tuple[str, str]]:
    match shard.replica.partition.topic, shard.machine:
        case topic, GroupMachine() as machine if topic == OFFSETS:
            for member in _without_session(machine):
                yield "member session", f"{member} may be silent for ever"
            for partition in _without_owner(machine, image):
                yield "unowned partition", f"{partition}, and the group is stable"
        case topic, TransactionMachine() as machine if topic == TRANSACTION_STATE:
            for transactional_id in _late(machine, now):
                yield "transaction timeout", f"{transactional_id} is still open"


def _without_session(machine: GroupMachine) -> Iterator[str]:
    shelf = machine.shelf
    for group_id, group in shelf.groups.items():
        match group:
            case ConsumerGroup():
                for member_id in group.members:
                    if MemberSessionTimer(group_id, member_id) not in shelf.consumers.deadlines:
                        yield f"{member_id} of {group_id}"
            case ClassicGroup():
                for classic in group.membership.members.values():
                    if classic.timer_at is None and not (classic.waits or classic.is_new):
                        yield f"{classic.member_id} of {group_id}"
            case ShareGroup():
                for member_id in group.members:
                    if member_id not in group.deadlines:
                        yield f"{member_id} of {group_id}"
            case _:
                pass


def _without_owner(machine: GroupMachine, image: ClusterImage) -> Iterator[str]:
    for group_id, group in machine.shelf.groups.items():
        if not isinstance(group, ConsumerGroup) or group.state_name != "Stable":
            continue
        for name in sorted(group.topic_names()):
            topic = image.topics.find(name)
            for index in () if topic is None else topic.partitions:
                if topic is not None and (topic.topic_id, index) not in group.owners:
                    yield f"no member of {group_id} has {name}-{index}"


def _late(machine: TransactionMachine, now: float) -> Iterator[str]:
    shelf = machine.shelf
    for known in shelf.transactions.values():
        if known.state is TransactionState.ONGOING and not known.is_two_phase:
            deadline = shelf.deadlines.get(known.transactional_id)
            if deadline is None or deadline + ABORT_SECONDS_MAX < now:
                yield known.transactional_id
