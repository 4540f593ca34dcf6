"""A member of a share group, as its records tell it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.groups.modern.partitions import Partitions


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member; a change makes a new one."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = field(default_factory=dict)


def subscribed_names(members: Iterable[ShareGroupMember]) -> set[str]:
    """Return the names of all topics that members want to read."""
    return {name for member in members for name in member.subscribed}
