"""The admin client's part for groups: list, describe, delete, their offsets, their members."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from moldau.client.admin_base import AdminBase
from moldau.client.connection import Connection
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.errors import KafkaError, check
from moldau.client.group_descriptions import GroupDescription, GroupListing, GroupMember
from moldau.client.group_offsets import (
    CommittedByPartition,
    OffsetAndMetadata,
    commit_offsets,
    fetch_offsets,
)
from moldau.client.member_metadata import (
    Subscription,
    decode_assignment,
    decode_subscription,
    grouped,
)
from moldau.client.shared_cluster import SharedCluster
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from moldau.protocol.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

Result = TypeVar("Result")

STATES_SINCE = 4
TYPES_SINCE = 5
MANY_MEMBERS_SINCE = 3
CONSUMER = "consumer"


class GroupAdmin(AdminBase):
    """Groups, whichever protocol their members speak."""

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        super().__init__(servers, config=config, cluster=cluster, **settings)
        self._group_lookup = CoordinatorLookup(self._cluster, CoordinatorType.GROUP)

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> dict[str, GroupListing]:
        """Return all groups, or those in some states and of some types, by name."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

        async def ask(connection: Connection) -> ListGroupsResponse:
            version = connection.version_of(ListGroupsRequest)
            least = TYPES_SINCE if request.types_filter else 0
            least = max(least, STATES_SINCE if request.states_filter else 0)
            if version < least:
                code = ErrorCode.UNSUPPORTED_VERSION
                raise KafkaError(code, f"ListGroups at {connection.address}", "no filters there")
            answer = await connection.call(request, ListGroupsResponse, version)
            check(answer.error_code, f"groups at {connection.address}")
            return answer

        await self._cluster.refresh([])
        found: dict[str, GroupListing] = {}
        for node_id in sorted(self._cluster.nodes):
            for row in (await self._ask_node_again(node_id, ask)).groups:
                found[row.group_id] = GroupListing(
                    row.group_id, row.protocol_type, row.group_state, row.group_type
                )
        return dict(sorted(found.items()))

    async def _ask_node_again(
        self, node_id: int, ask: Callable[[Connection], Awaitable[ListGroupsResponse]]
    ) -> ListGroupsResponse:
        """Ask a broker until it has loaded its groups."""

        async def attempt() -> ListGroupsResponse:
            return await ask(await self._cluster.connect(node_id))

        return await self._cluster.retry(attempt, f"groups of broker {node_id}")

    async def describe_groups(
        self, group_ids: Iterable[str]
    ) -> dict[str, GroupDescription | KafkaError]:
        """Return groups with their members and what each has, or an error in a group's place."""
        return {each: await self._or_error(self._describe(each)) for each in group_ids}

    async def _describe(self, group_id: str) -> GroupDescription:
        async def ask(connection: Connection) -> GroupDescription:
            node_id = await self._group_lookup.find(group_id)
            try:
                return await _describe_consumer(connection, group_id, node_id)
            except KafkaError as error:
                if error.code not in (
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    ErrorCode.UNSUPPORTED_VERSION,
                ):
                    raise
            return await _describe_classic(connection, group_id, node_id)

        return await self._group_lookup.call(group_id, ask, f"group {group_id}")

    async def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete groups that have no members, and their offsets; each is gone or has an error."""

        async def delete(group_id: str) -> None:
            async def ask(connection: Connection) -> None:
                request = DeleteGroupsRequest(groups_names=[group_id])
                for row in (await connection.call(request, DeleteGroupsResponse)).results:
                    check(row.error_code, f"group {group_id}", row.error_message)

            await self._group_lookup.call(group_id, ask, f"delete group {group_id}")

        return {each: await self._or_error(delete(each)) for each in group_ids}

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> CommittedByPartition:
        """Return what a group has committed, of all partitions or of these; None if nothing."""
        wanted = None if partitions is None else [TopicPartition(*each) for each in partitions]

        async def ask(connection: Connection) -> CommittedByPartition:
            return await fetch_offsets(connection, group_id, wanted, require_stable=require_stable)

        return await self._group_lookup.call(group_id, ask, f"offsets of group {group_id}")

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Set a group's offsets while it has no members; each is set (None) or has an error."""
        wanted = {
            TopicPartition(*key): OffsetAndMetadata(what) if isinstance(what, int) else what
            for key, what in offsets.items()
        }

        async def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
            return await commit_offsets(connection, group_id, wanted)

        return await self._group_lookup.call(group_id, ask, f"offsets of group {group_id}")

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Delete a group's offsets of topics that no member reads; each is gone or has an error."""
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in numbers],
                )
                for name, numbers in grouped(partitions).items()
            ],
        )

        async def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
            answer = await connection.call(request, OffsetDeleteResponse)
            check(answer.error_code, f"group {group_id}")
            found: dict[TopicPartition, KafkaError | None] = {}
            for topic in answer.topics:
                for row in topic.partitions:
                    key = TopicPartition(topic.name, row.partition_index)
                    found[key] = _error(row.error_code, f"group {group_id}, {key}")
            return found

        return await self._group_lookup.call(group_id, ask, f"offsets of group {group_id}")

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[str] = (),
        *,
        instances: Iterable[str] = (),
        reason: str | None = None,
    ) -> dict[str, KafkaError | None]:
        """Remove members by their ids and static ones by their names, all of them for none.

        Each is gone (None) or has an error. Who is still running joins again.
        """
        identities = [MemberIdentity(member_id=each, reason=reason) for each in members]
        identities += [MemberIdentity(group_instance_id=each, reason=reason) for each in instances]
        if not identities:
            described = await self._describe(group_id)
            identities = [
                MemberIdentity(
                    member_id="" if each.instance_id else each.member_id,
                    group_instance_id=each.instance_id,
                    reason=reason,
                )
                for each in described.members
            ]
        if not identities:
            return {}

        async def ask(connection: Connection) -> dict[str, KafkaError | None]:
            version = connection.version_of(LeaveGroupRequest)
            if version < MANY_MEMBERS_SINCE:
                what = f"LeaveGroup at {connection.address}"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what, "of other members")
            request = LeaveGroupRequest(group_id=group_id, members=identities)
            answer = await connection.call(request, LeaveGroupResponse, version)
            check(answer.error_code, f"group {group_id}")
            names = ((row.group_instance_id or row.member_id, row) for row in answer.members)
            return {name: _error(row.error_code, f"member {name}") for name, row in names}

        return await self._group_lookup.call(group_id, ask, f"members of group {group_id}")

    async def _or_error(self, work: Awaitable[Result]) -> Result | KafkaError:
        try:
            return await work
        except KafkaError as error:
            return error


def _error(code: int, what: str) -> KafkaError | None:
    return KafkaError(code, what) if code else None


async def _describe_consumer(
    connection: Connection, group_id: str, node_id: int
) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    row = (await connection.call(request, ConsumerGroupDescribeResponse)).groups[0]
    check(row.error_code, f"group {group_id}", row.error_message)
    return GroupDescription(
        group_id,
        CONSUMER,
        CONSUMER,
        row.group_state,
        row.assignor_name,
        [
            GroupMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host,
                tuple(each.subscribed_topic_names),
                _partitions(each.assignment),
                _partitions(each.target_assignment),
                each.member_epoch,
                each.subscribed_topic_regex or None,
                each.rack_id,
            )
            for each in row.members
        ],
        node_id,
        row.group_epoch,
        row.assignment_epoch,
    )


def _partitions(assignment: Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(each.topic_name, number)
        for each in assignment.topic_partitions
        for number in each.partitions
    )


async def _describe_classic(
    connection: Connection, group_id: str, node_id: int
) -> GroupDescription:
    request = DescribeGroupsRequest(groups=[group_id])
    row = (await connection.call(request, DescribeGroupsResponse)).groups[0]
    check(row.error_code, f"group {group_id}", row.error_message)
    if row.group_state == "Dead":
        # A broker before Kafka 4 says so of groups that it does not have.
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")
    is_consumer = row.protocol_type in (CONSUMER, "")
    return GroupDescription(
        group_id,
        "classic",
        row.protocol_type,
        row.group_state,
        row.protocol_data,
        [_classic_member(each, is_consumer=is_consumer) for each in row.members],
        node_id,
    )


def _classic_member(row: DescribedGroupMember, *, is_consumer: bool) -> GroupMember:
    subscription = Subscription(())
    assignment: tuple[TopicPartition, ...] = ()
    if is_consumer:
        try:
            # Neither is known of a member that is about to join.
            if row.member_metadata:
                subscription = decode_subscription(row.member_metadata)
            assignment = decode_assignment(row.member_assignment)
        except ProtocolError:
            pass
    return GroupMember(
        row.member_id,
        row.group_instance_id,
        row.client_id,
        row.client_host,
        tuple(subscription.topics),
        assignment,
        rack=subscription.rack,
    )
