"""What an admin client says of groups."""

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.kernel.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group that a coordinator has."""

    group_id: str
    protocol_type: str
    """`consumer` if its members share topics; "" if it has only offsets."""
    state: str
    """Stable, Empty, PreparingRebalance, Assigning, ...; "" from a broker that does not tell."""
    type: str
    """classic, consumer, share, streams; "" from a broker that does not tell."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One who shares in a group."""

    member_id: str
    instance_id: str | None
    """A static member's name."""
    client_id: str
    host: str
    topics: Sequence[str]
    """What it has subscribed to."""
    assignment: Sequence[TopicPartition]
    target: Sequence[TopicPartition] | None = None
    """In the consumer protocol: what it is to have when it has given up the rest."""
    epoch: int | None = None
    """In the consumer protocol."""
    regex: str | None = None
    """In the consumer protocol: the pattern that it has subscribed to."""
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    group_id: str
    type: str
    """classic or consumer."""
    protocol_type: str
    state: str
    assignor: str
    members: Sequence[GroupMember]
    coordinator: int
    """The broker in charge."""
    epoch: int | None = None
    """In the consumer protocol: rises when members or topics change."""
    target_epoch: int | None = None
    """In the consumer protocol: the one that was shared out last."""
