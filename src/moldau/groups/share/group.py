"""A share group: its members, what each shall read, and which partitions have a share state."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NoReturn

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.group import GroupType
from moldau.groups.share import records
from moldau.groups.share.topics import SharedTopics
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.modern.partitions import Partitions
    from moldau.groups.share.member import ShareGroupMember

FIRST_EPOCH: Final = 1
"""Of a group that no member has joined yet: 0 is the epoch of a member that joins."""


class ShareGroup:
    """Durable, apart from the deadlines; a `groups.group.Group`."""

    type = GroupType.SHARE
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_ms = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.topics = SharedTopics()
        # Soft.
        self.deadlines: dict[str, float] = {}
        """When a member is given up that is not heard of."""
        self.initializing_since = float("-inf")
        """When share states were asked for last that are not there yet."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def state_name(self) -> str:
        """Its state in Kafka's words."""
        return "Empty" if self.is_empty else "Stable"

    # No offsets are committed for share groups.

    def _refuse_offsets(self) -> NoReturn:
        raise Refusal(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group."
        )

    def check_offset_commit(
        self,
        member_id: str,  # noqa: ARG002
        instance_id: str | None,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        *,
        is_transactional: bool,  # noqa: ARG002
        version: int,  # noqa: ARG002
    ) -> None:
        """Refuse."""
        self._refuse_offsets()

    def check_offset_fetch(self, member_id: str | None, epoch: int) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse_offsets()

    def check_offset_delete(self) -> None:
        """Refuse."""
        self._refuse_offsets()

    def check_delete(self) -> None:
        """Refuse while there are members."""
        self.check_empty()

    def check_empty(self) -> None:
        """Refuse what may not be done under the eyes of members."""
        if not self.is_empty:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members.")

    def is_subscribed_to(self, topic: str) -> bool:  # noqa: ARG002
        """Return False: nothing of what is committed is in use."""
        return False

    def expires_offsets_since(self, commit_ms: int) -> int | None:  # noqa: ARG002
        """Return None: there are no offsets."""
        return None

    def tombstones(self) -> Iterator[StoredRecord]:
        """Return the records that make the group forgotten."""
        for member_id in self.members:
            yield records.current_assignment(self.group_id, member_id, None)
        for member_id in self.targets:
            yield records.target(self.group_id, member_id, None)
        yield records.target_epoch(self.group_id, None)
        for member_id in self.members:
            yield records.member(self.group_id, member_id, None)
        if self.topics != SharedTopics():
            yield records.shared_topics(self.group_id, None)
        yield records.epoch(self.group_id, None)
