"""What the coordinator of groups can be asked, and what it wants done outside of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moldau.coordination.command import Command, Done, RequestCommand, Ticket
from moldau.coordination.decision import Effect
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from moldau.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from moldau.protocol.messages.describe_groups import DescribedGroup as DescribedClassicGroup
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from moldau.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from moldau.protocol.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

# Members.


class JoinGroup(RequestCommand[JoinGroupRequest, JoinGroupResponse]):
    """Become a member of a classic group, or stay one in its next generation."""

    __slots__ = ()


class SyncGroup(RequestCommand[SyncGroupRequest, SyncGroupResponse]):
    """Ask for a member's part; the leader brings the parts of all."""

    __slots__ = ()


class ClassicHeartbeat(RequestCommand[HeartbeatRequest, HeartbeatResponse]):
    """Say that a member of a classic group is there."""

    __slots__ = ()


class LeaveGroup(RequestCommand[LeaveGroupRequest, LeaveGroupResponse]):
    """Remove members, as versions from 3 on have it: each is answered for itself."""

    __slots__ = ()


class ConsumerHeartbeat(
    RequestCommand[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse]
):
    """Join a consumer group, stay in it or leave it; the request is checked."""

    __slots__ = ()


class ShareHeartbeat(RequestCommand[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse]):
    """Join a share group, stay in it or leave it."""

    __slots__ = ()


# Offsets.


class CommitOffsets(RequestCommand[OffsetCommitRequest, OffsetCommitResponse]):
    """Commit offsets of partitions that exist; topics have names and ids."""

    __slots__ = ()


class CommitTransactionalOffsets(RequestCommand[TxnOffsetCommitRequest, TxnOffsetCommitResponse]):
    """Commit offsets that count when their producer's transaction is committed."""

    __slots__ = ()


class DeleteOffsets(RequestCommand[OffsetDeleteRequest, OffsetDeleteResponse]):
    """Forget offsets of partitions that exist."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FetchOffsets(Command[OffsetFetchResponseGroup]):
    """Ask for the offsets of a group; its topics have names."""

    group: OffsetFetchRequestGroup
    is_stable: bool
    """Whether an offset may not be told that a transaction is about to replace."""


@dataclass(frozen=True, slots=True)
class ForgetTopicOffsets(Command[Done]):
    """Topics are deleted, by name and id: so are the offsets that were committed for them."""

    topics: Sequence[tuple[str, bytes]]


# All kinds of groups.


@dataclass(frozen=True, slots=True)
class ListGroups(Command[Sequence[ListedGroup]]):
    """List the groups in one of these states and of one of these types; none named: in any."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    """Both in small letters."""


@dataclass(frozen=True, slots=True)
class DeleteGroup(Command[Done]):
    """Delete one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribeClassicGroup(Command[DescribedClassicGroup]):
    """Describe one group to a client of DescribeGroups."""

    group_id: str
    version: int


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroup(Command[DescribedConsumerGroup]):
    """Describe one group to a client of ConsumerGroupDescribe."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribeShareGroup(Command[DescribedShareGroup]):
    """Describe one group to a client of ShareGroupDescribe."""

    group_id: str


# Share states: which partitions have one, and where each begins.

StartOffsets = Mapping[TopicId, Mapping[int, int]]
"""Where to begin, by topic and partition; -1 as the group's settings say."""

Waiting = TypeVar("Waiting")
"""What the client gets whose request waits for share states."""


class AlterShareOffsets(
    RequestCommand[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse]
):
    """Have a share group without members begin elsewhere."""

    __slots__ = ()


class DeleteShareOffsets(
    RequestCommand[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse]
):
    """Have a share group without members forget topics."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ListShared(Command[Partitions]):
    """Ask which partitions of a group have a share state."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ForgetSharedTopics(Command[Done]):
    """Topics are gone: nothing of them is shared any more."""

    topic_ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class InitializeShares(Effect, Generic[Waiting]):
    """Have share states made; `SharesInitialized` is to follow with the outcome."""

    group_id: str
    state_epoch: int
    start_offsets: StartOffsets
    ticket: Ticket[Waiting]
    response: Waiting
    """For the client that waits until then."""


@dataclass(frozen=True, slots=True)
class SharesInitialized(Command[Done]):
    """Share states are there, or could not be made."""

    asked: InitializeShares[Any]
    made: Partitions
    failed: Partitions


@dataclass(frozen=True, slots=True)
class DeleteShares(Effect, Generic[Waiting]):
    """Have share states deleted; `SharesDeleted` is to follow for those that are."""

    group_id: str
    partitions: Partitions
    ticket: Ticket[Waiting]
    response: Waiting
    """For the client that waits until then."""
    deletes_group: bool = False
    """Whether the group goes as well, if all of them could be deleted."""


@dataclass(frozen=True, slots=True)
class SharesDeleted(Command[Done]):
    """Share states of whole topics are gone; those of others could not be deleted."""

    asked: DeleteShares[Any]
    deleted: Sequence[TopicId]
