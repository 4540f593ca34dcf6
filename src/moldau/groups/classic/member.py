"""A member of a classic group."""

from dataclasses import dataclass

from moldau.coordination.command import Ticket
from moldau.protocol.messages.describe_groups import DescribedGroupMember
from moldau.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.protocol.stored.offsets import MemberMetadata

Protocols = tuple[tuple[str, bytes], ...]
"""Names with what the member says in each, the one that it likes best first."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member's identity, the protocols that it speaks, and what it waits for."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """It waits for its first generation: until then it may not know its id, and cannot beat."""
    join: Ticket[JoinGroupResponse] | None = None
    sync: Ticket[SyncGroupResponse] | None = None
    deadline: float = 0.0
    """When its session ends, unless it is heard of before."""
    timer_at: float | None = None
    """When the timer fires that compares the deadline next."""

    @property
    def names(self) -> set[str]:
        """The protocols that it speaks."""
        return {name for name, _ in self.protocols}

    @property
    def waits(self) -> bool:
        """Whether it has asked and not been answered: it is alive as long as that lasts."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return what it says in a protocol."""
        return next((said for name, said in self.protocols if name == protocol), b"")

    def for_leader(self, protocol: str | None) -> JoinGroupResponseMember:
        """Return the member as the leader sees it."""
        return JoinGroupResponseMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            metadata=self.metadata(protocol),
        )

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """Return the member as administrators see it."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=self.metadata(protocol),
            member_assignment=self.assignment,
        )

    def to_record(self, protocol: str | None) -> MemberMetadata:
        """Return what is recorded of it."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
        )


def member_of_record(recorded: MemberMetadata, protocol: str) -> ClassicMember:
    """Return a member as it was recorded: it can speak what the group spoke then."""
    # The first version of the record has no rebalance timeout.
    has_own = recorded.rebalance_timeout != -1
    return ClassicMember(
        member_id=recorded.member_id,
        instance_id=recorded.group_instance_id,
        client_id=recorded.client_id,
        client_host=recorded.client_host,
        rebalance_timeout_ms=recorded.rebalance_timeout if has_own else recorded.session_timeout,
        session_timeout_ms=recorded.session_timeout,
        protocols=((protocol, bytes(recorded.subscription)),),
        assignment=bytes(recorded.assignment),
    )
