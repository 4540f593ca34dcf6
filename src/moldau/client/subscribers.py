"""The members of a group as an assignor sees them."""

from dataclasses import dataclass

from moldau.client.member_metadata import Subscription
from moldau.kernel.ids import TopicPartition

Assignments = dict[str, list[TopicPartition]]
"""What each member is to read, by member id."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member with what it wants and has."""

    member_id: str
    subscription: Subscription
    instance_id: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Its place among others: static members keep theirs over restarts."""
        return self.instance_id is None, self.instance_id or self.member_id
