"""A group as it will be when what is decided is recorded."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from moldau.coordination.stored_record import StoredRecord
from moldau.protocol.schema import Message

if TYPE_CHECKING:
    from moldau.coordination.machine import Effect


class Replaying(Protocol):
    """A group's durable state."""

    def copy(self: "Self") -> "Self":
        """Return a copy that changes for itself."""

    def replay(self, key: Message, value: Message | None) -> None:
        """Apply one of the group's records."""


Self = TypeVar("Self", bound=Replaying)


class Draft(Generic[Self]):
    """Collects records, and shows the group with them; the group itself changes when they are."""

    def __init__(self, group: Self, before: Iterable[StoredRecord] = ()) -> None:
        self.group = group
        self.records = list(before)
        """What is to be recorded; it may begin with what ends a group of another kind."""
        self.effects: list[Effect] = []
        """What else is to be done, such as to tell those who wait for a group that it ended."""
        self._is_copy = False

    def write(self, *records: StoredRecord) -> None:
        """Add records, and see what they make of the group."""
        if records and not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.records.append(record)
            self.group.replay(record.key, record.value)
