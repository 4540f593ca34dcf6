"""What share groups are asked beside their members' requests, and what they want to be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.coordination.machine import Effect, Ticket
from moldau.kernel.ids import TopicId

StartOffsets = Mapping[TopicId, Mapping[int, int]]
"""Where to begin, by topic and partition; -1 as the group's settings say."""

Partitions = Mapping[TopicId, frozenset[int]]


@dataclass(frozen=True, slots=True)
class InitializeShares(Effect):
    """Have share states made; `SharesInitialized` is to follow with the outcome."""

    group_id: str
    state_epoch: int
    start_offsets: StartOffsets
    ticket: Ticket
    response: object
    """For the one who waits until then."""


@dataclass(frozen=True, slots=True)
class SharesInitialized:
    """Share states are there, or could not be made."""

    group_id: str
    made: Partitions
    failed: Partitions
    ticket: Ticket
    response: object


@dataclass(frozen=True, slots=True)
class DeleteShares(Effect):
    """Have share states deleted; `SharesDeleted` is to follow for those that are."""

    group_id: str
    partitions: Partitions
    ticket: Ticket
    response: object
    """For the one who waits until then."""
    deletes_group: bool = False
    """Whether the group goes as well, if all of them could be deleted."""


@dataclass(frozen=True, slots=True)
class SharesDeleted:
    """Share states of whole topics are gone; those of others could not be deleted."""

    asked: DeleteShares
    deleted: Sequence[TopicId]


@dataclass(frozen=True, slots=True)
class ForgetSharedTopics:
    """Topics are gone: nothing of them is shared any more."""

    topic_ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListShared:
    """Ask which partitions of a group have a share state: `Partitions`."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ShareSessionTimer:
    """A member should have been heard of by now."""

    group_id: str
    member_id: str
