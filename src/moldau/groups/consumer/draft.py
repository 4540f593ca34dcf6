"""A consumer group as it will be when what is decided is recorded."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.coordination.stored_record import StoredRecord
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import JOINING, ConsumerMember
from moldau.groups.consumer.records import (
    current_record,
    member_record,
    no_member_records,
    target_record,
)
from moldau.groups.consumer.replay import replay_record

if TYPE_CHECKING:
    from moldau.coordination.decision import Effect


class ConsumerGroupDraft:
    """Collects records, and shows the group with them; the group itself changes by their replay."""

    def __init__(self, group: ConsumerGroup, before: Iterable[StoredRecord] = ()) -> None:
        self.group = group
        self.records = list(before)
        """What is to be recorded; it may begin with what ends a group of another kind."""
        self.effects: list[Effect] = []
        """What else is to be done, such as to answer members that wait in a group that ended."""
        self._is_copy = False

    def write(self, *records: StoredRecord) -> None:
        """Add records, and see what they make of the group."""
        if records and not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
        for record in records:
            self.records.append(record)
            replay_record(self.group, record.key, record.value)

    def replace_static(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give a static member that comes back under another id all that it had.

        Nothing moves between the other members.
        """
        group_id, target = self.group.group_id, self.group.target_of(old.member_id)
        member = replace(old, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        self.write(
            *no_member_records(group_id, old.member_id),
            member_record(group_id, member),
            target_record(group_id, member_id, target),
            current_record(group_id, member),
        )
        return self.group.members[member_id]
