"""What classic members tell each other: subscriptions, assignments, and the sticky ones' memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from moldau.protocol.schema import Array, Buffer, Message, Struct, field, int32, string

NO_GENERATION: Final = -1
VERSION: Final = 3
"""The newest format; an older reader reads what it knows of it, and ignores the rest."""

AnyMessage = TypeVar("AnyMessage", bound=Message)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants and has."""

    topics: Sequence[str]
    owned: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION
    """In which it got what it has."""
    rack: str | None = None
    user_data: bytes | None = None
    """For the assignor alone."""


class StickyTopic(Struct):
    """The partitions that a member had of one topic."""

    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class StickyUserData(Message, versions=(0, 1)):
    """What a member of the eager sticky assignor had, and in which generation."""

    previous_assignment: Sequence[StickyTopic] = field(Array(StickyTopic))
    generation: int = field(int32, since=1, default=NO_GENERATION, ignorable=True)


def encode_subscription(subscription: Subscription, version: int = VERSION) -> bytes:
    """Return the metadata of a JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in grouped(sorted(subscription.owned)).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return version.to_bytes(2) + message.encode(version)


def decode_subscription(data: Buffer) -> Subscription:
    """Read any member's metadata; `ProtocolError` if they are malformed."""
    message = _decode(ConsumerProtocolSubscription, data)
    return Subscription(
        tuple(message.topics),
        tuple(
            TopicPartition(each.topic, partition)
            for each in message.owned_partitions
            for partition in each.partitions
        ),
        message.generation_id,
        message.rack_id or None,
        message.user_data,
    )


def encode_assignment(partitions: Iterable[TopicPartition], version: int = VERSION) -> bytes:
    """Return what the leader sends for one member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=each)
            for topic, each in grouped(partitions).items()
        ]
    )
    return version.to_bytes(2) + message.encode(version)


def decode_assignment(data: Buffer) -> tuple[TopicPartition, ...]:
    """Read what a member is given; nothing at all is no partitions."""
    if not data:
        return ()
    message = _decode(ConsumerProtocolAssignment, data)
    return tuple(
        TopicPartition(each.topic, partition)
        for each in message.assigned_partitions
        for partition in each.partitions
    )


def encode_sticky(owned: Iterable[TopicPartition], generation: int) -> bytes:
    """Return what a member of the eager sticky assignor remembers."""
    topics = [StickyTopic(topic=topic, partitions=each) for topic, each in grouped(owned).items()]
    return StickyUserData(previous_assignment=topics, generation=generation).encode(1)


def decode_sticky(data: Buffer | None) -> tuple[tuple[TopicPartition, ...], int]:
    """Read what a member remembers, in either version; what is malformed is nothing."""
    for version in (1, 0):
        try:
            message, _ = StickyUserData.plan(version).decode_from(data or b"")
        except ProtocolError:
            continue
        owned = tuple(
            TopicPartition(each.topic, partition)
            for each in message.previous_assignment
            for partition in each.partitions
        )
        return owned, message.generation
    return (), NO_GENERATION


def grouped(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by their topics, in the order in which they come."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _decode(kind: type[AnyMessage], data: Buffer) -> AnyMessage:
    if len(data) < 2:
        raise ProtocolError(f"{kind.__name__} without a version")
    version = min(int.from_bytes(data[:2]), VERSION)
    # A newer version has more behind what this one knows.
    message: AnyMessage
    message, _ = kind.plan(version).decode_from(data, 2)
    return message
