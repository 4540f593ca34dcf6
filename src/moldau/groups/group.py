"""What all kinds of groups can be asked."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Protocol

from moldau.coordination.stored_record import StoredRecord

PartitionCheck = Callable[[str, bytes, int], None]
"""Refuses a commit for a partition: its topic's name and id, and its number."""


class GroupType(Enum):
    """The protocols that members speak; the values are what is shown and what filters say."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class Group(Protocol):
    """A group's durable state; each `check_...` raises a `Refusal` with what clients are told."""

    @property
    def group_id(self) -> str:
        """Its name."""

    @property
    def type(self) -> GroupType:
        """What its members speak."""

    @property
    def state_name(self) -> str:
        """Its state in Kafka's words, such as Stable."""

    @property
    def protocol_type(self) -> str:
        """What the members are to each other: `consumer`, `share`, `connect`; empty if nothing."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> PartitionCheck | None:
        """Refuse a commit unless it is of a member of that epoch.

        If an older epoch will do for some partitions, return what tells for which.
        """

    def check_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse a member that asks with an old epoch."""

    def check_offset_delete(self) -> None:
        """Refuse to delete offsets of a group that is what it should not be for that."""

    def check_delete(self) -> None:
        """Refuse to delete a group that is in use."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic, or may: its offsets are in use then."""

    def expires_offsets_since(self, commit_ms: int) -> int | None:
        """Return the time from which on an offset committed then counts as unused; None: never."""

    def tombstones(self) -> Iterator[StoredRecord]:
        """Return the records that make the group forgotten, without its offsets."""
