"""A group without members, for clients that commit offsets and assign partitions themselves."""

from collections.abc import Iterator

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.group import GroupType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.offsets import GroupMetadataKey


class SimpleGroup:
    """A `groups.group.Group`: for clients an empty classic group that has no protocol."""

    __slots__ = ("group_id",)

    type = GroupType.CLASSIC
    state_name = "Empty"
    protocol_type = ""
    is_empty = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,  # noqa: ARG002 - there are no members
        epoch: int,
        *,
        is_transactional: bool,  # noqa: ARG002
        version: int,  # noqa: ARG002
    ) -> None:
        """Refuse a client that takes itself for a member."""
        if epoch >= 0:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is no member.")

    def check_offset_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let every client ask."""

    def check_offset_delete(self) -> None:
        """Let every client delete."""

    def check_delete(self) -> None:
        """Let every client delete."""

    def is_subscribed_to(self, topic: str) -> bool:  # noqa: ARG002 - none
        """Return False: no member reads anything."""
        return False

    def expires_offsets_since(self, commit_ms: int) -> int | None:
        """Return the time of the commit: nothing else tells whether it is used."""
        return commit_ms

    def tombstones(self) -> Iterator[StoredRecord]:
        """Return the record that makes it forgotten."""
        yield StoredRecord(GroupMetadataKey(group=self.group_id), None)
