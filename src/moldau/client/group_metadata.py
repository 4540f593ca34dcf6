"""What a transaction has to know of a consumer: its group, its membership, and offsets to store."""

from typing import NamedTuple


class GroupMetadata(NamedTuple):
    """A consumer's group and its place in it; a group's name alone is not checked for that."""

    group_id: str
    generation_id: int = -1
    """The generation, or the member's epoch."""
    member_id: str = ""
    group_instance_id: str | None = None


class CommittedOffset(NamedTuple):
    """The offset of the next record that a group is to read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
