"""The groups of one partition, and what is known of them only until a restart."""

from collections import deque
from typing import TYPE_CHECKING

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.timers import ConsumerSoftState
from moldau.groups.context import GroupContext
from moldau.groups.offsets.store import GroupOffsets
from moldau.groups.share.group import ShareGroup
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.classic.membership import ClassicMembers
    from moldau.groups.group import Group


class GroupShelf:
    """What decisions look at; `groups` and `offsets` are durable, all else is soft."""

    def __init__(self, context: GroupContext) -> None:
        self.context = context
        self.groups: dict[str, Group] = {}
        """By id; changed by `replay` only."""
        self.offsets = GroupOffsets()
        """Changed by `replay` and `end_transaction` only."""
        self.forming: dict[str, ClassicMembers] = {}
        """Of classic groups whose first record is decided, until it is replayed."""
        self.forming_shares: dict[str, ShareGroup] = {}
        """The same of share groups."""
        self.consumers = ConsumerSoftState()
        self.unexpired: deque[str] = deque()
        """Groups that the current look for unused offsets has not reached."""

    def get_consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a group that is there; `Refusal` if it is not, or is of another kind."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def get_share_group(self, group_id: str, *, create: bool = False) -> ShareGroup:
        """Return a share group; with `create` one that its first record will add to the others.

        A decision that has such a record for it calls `keep_forming`.
        """
        group = self.groups.get(group_id)
        if group is None and create:
            return ShareGroup(group_id)
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    def keep_forming(self, group: ShareGroup) -> None:
        """Let a new group have the soft state that it has now when its first record is replayed."""
        if group.group_id not in self.groups:
            self.forming_shares[group.group_id] = group
