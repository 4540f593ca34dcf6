"""Who of a classic group reads what: the assignors, by Kafka's names and Java's classes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from moldau.client.errors import ConfigError
from moldau.client.member_metadata import Subscription, encode_sticky
from moldau.client.sticky_assignment import (
    assign_sticky,
    assign_sticky_cooperatively,
    generation_data,
)
from moldau.client.subscribers import Assignments, Subscriber
from moldau.kernel.ids import TopicPartition

UserData = Callable[[Collection[TopicPartition] | None, int], bytes | None]
"""Makes what an assignor wants to hear from a member, of its last assignment and generation."""


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """One way to share partitions out."""

    name: str
    java_class: str
    assign: Callable[[Mapping[str, int], Sequence[Subscriber]], Assignments]
    """Takes each topic's number of partitions, and the members."""
    user_data: UserData
    is_cooperative: bool = False
    """Whether members may keep what they have while they join."""


def assign_range(counts: Mapping[str, int], members: Sequence[Subscriber]) -> Assignments:
    """Give each member of a topic a run of its partitions; the first get one more."""
    assignments: Assignments = {member.member_id: [] for member in members}
    for topic, count in sorted(counts.items()):
        readers = _readers(topic, members)
        start = 0
        for place, reader in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            run = [TopicPartition(topic, number) for number in range(start, start + size)]
            assignments[reader.member_id] += run
            start += size
    return assignments


def assign_round_robin(counts: Mapping[str, int], members: Sequence[Subscriber]) -> Assignments:
    """Deal all partitions out one by one, skipping those who do not want them."""
    assignments: Assignments = {member.member_id: [] for member in members}
    dealt = cycle(sorted(members, key=lambda member: member.order))
    for topic, count in sorted(counts.items()):
        if not _readers(topic, members):
            continue
        for number in range(count):
            while topic not in (member := next(dealt)).subscription.topics:
                pass
            assignments[member.member_id].append(TopicPartition(topic, number))
    return assignments


def _readers(topic: str, members: Sequence[Subscriber]) -> list[Subscriber]:
    readers = [member for member in members if topic in member.subscription.topics]
    return sorted(readers, key=lambda member: member.order)


def _nothing(_last: Collection[TopicPartition] | None, _generation: int) -> None:
    return None


def _memory(last: Collection[TopicPartition] | None, generation: int) -> bytes | None:
    return None if last is None else encode_sticky(sorted(last), generation)


def _generation(_last: Collection[TopicPartition] | None, generation: int) -> bytes:
    return generation_data(generation)


_PACKAGE: Final = "org.apache.kafka.clients.consumer"
ASSIGNORS: Final = (
    ClientAssignor("range", f"{_PACKAGE}.RangeAssignor", assign_range, _nothing),
    ClientAssignor("roundrobin", f"{_PACKAGE}.RoundRobinAssignor", assign_round_robin, _nothing),
    ClientAssignor("sticky", f"{_PACKAGE}.StickyAssignor", assign_sticky, _memory),
    ClientAssignor(
        "cooperative-sticky",
        f"{_PACKAGE}.CooperativeStickyAssignor",
        assign_sticky_cooperatively,
        _generation,
        is_cooperative=True,
    ),
)
DEFAULT_STRATEGY: Final = "range,cooperative-sticky"


def parse_strategy(text: str) -> tuple[ClientAssignor, ...]:
    """Read `partition.assignment.strategy`: names or Java's class names, the best one first."""
    known = {name: each for each in ASSIGNORS for name in (each.name, each.java_class)}
    chosen = []
    for name in filter(None, map(str.strip, text.split(","))):
        if name not in known:
            names = ", ".join(each.name for each in ASSIGNORS)
            raise ConfigError(
                f"partition.assignment.strategy={name}: {names} and the names of their Java"
                " classes are allowed"
            )
        chosen.append(known[name])
    if not chosen:
        raise ConfigError("partition.assignment.strategy names no assignor: range is a usual one")
    if len(set(chosen)) < len(chosen):
        raise ConfigError(f"partition.assignment.strategy={text}: one is named twice")
    return tuple(chosen)


def subscription_for(
    assignor: ClientAssignor,
    subscription: Subscription,
    last: Collection[TopicPartition] | None,
    last_generation: int,
) -> Subscription:
    """Return a subscription with what an assignor wants to hear."""
    return Subscription(
        subscription.topics,
        subscription.owned,
        subscription.generation,
        subscription.rack,
        assignor.user_data(last, last_generation),
    )
