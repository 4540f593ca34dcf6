"""What a transaction has to know of a consumer: its group, its membership, and offsets to store."""

from typing import NamedTuple, Protocol


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


class StoredOffset(Protocol):
    """Whatever says how far a group has read, as a consumer's own commits do."""

    @property
    def offset(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def leader_epoch(self) -> int: ...


def stored(offset: StoredOffset | int) -> CommittedOffset:
    """Return what is stored for a bare offset, or for one that has more to say."""
    if isinstance(offset, int):
        return CommittedOffset(offset)
    return CommittedOffset(offset.offset, offset.metadata, offset.leader_epoch)
