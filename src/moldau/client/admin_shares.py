"""The admin client's part for share groups: who is in them, and where they have got to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.client.admin_base import AdminBase
from moldau.client.by_name import ask_each
from moldau.client.connection import Connection
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.errors import ClientError, KafkaError, check
from moldau.client.leaders import by_topic
from moldau.kernel.ids import TopicPartition
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@dataclass(frozen=True, slots=True)
class ShareMemberDescription:
    """A member of a share group."""

    member_id: str
    client_id: str
    client_host: str
    rack: str | None
    member_epoch: int
    subscription: frozenset[str]
    assignment: frozenset[TopicPartition]
    """Others may have the same partitions."""


@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    """A share group and its members."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: int
    members: tuple[ShareMemberDescription, ...]


@dataclass(frozen=True, slots=True)
class SharePartitionOffset:
    """Where a share group has got to in a partition."""

    start_offset: int
    """The first record that may still be handed out."""
    leader_epoch: int
    lag: int | None
    """How many records are not settled; None if the broker does not tell."""


class ShareAdmin(AdminBase):
    """Share groups (KIP-932)."""

    async def describe_share_groups(
        self, group_ids: Iterable[str]
    ) -> dict[str, ShareGroupDescription | ClientError]:
        """Return share groups with their members, or an error in a group's place."""
        lookup = self._share_lookup()

        async def describe(group_id: str) -> ShareGroupDescription:
            async def ask(connection: Connection) -> DescribedGroup:
                request = ShareGroupDescribeRequest(group_ids=[group_id])
                [group] = (await connection.call(request, ShareGroupDescribeResponse)).groups
                check(group.error_code, f"share group {group_id}", group.error_message)
                return group

            group = await lookup.call(group_id, ask, "describe share groups")
            return _description(group, await lookup.find(group_id))

        return await ask_each(group_ids, describe)

    async def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, SharePartitionOffset | KafkaError | None]:
        """Return where a share group has got to, in some partitions or in all that it has read.

        None is for a partition that the group has not begun with.
        """
        topics = None
        if partitions is not None:
            wanted = by_topic(dict.fromkeys(TopicPartition(*key) for key in partitions))
            topics = [
                DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(indexes))
                for name, indexes in wanted.items()
            ]
        request = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)]
        )

        async def ask(
            connection: Connection,
        ) -> dict[TopicPartition, SharePartitionOffset | KafkaError | None]:
            [group] = (await connection.call(request, DescribeShareGroupOffsetsResponse)).groups
            check(group.error_code, f"share group {group_id}", group.error_message)
            found: dict[TopicPartition, SharePartitionOffset | KafkaError | None] = {}
            for topic in group.topics:
                for row in topic.partitions:
                    key = TopicPartition(topic.topic_name, row.partition_index)
                    found[key] = None
                    if row.error_code:
                        found[key] = KafkaError(row.error_code, f"{key}", row.error_message)
                    elif row.start_offset >= 0:
                        lag = row.lag if row.lag >= 0 else None
                        found[key] = SharePartitionOffset(row.start_offset, row.leader_epoch, lag)
            return found

        return await self._share_lookup().call(group_id, ask, "list share group offsets")

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Have a share group without members go on elsewhere; None where that is done."""
        wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}
        request = AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=offset
                        )
                        for index, offset in partitions.items()
                    ],
                )
                for name, partitions in by_topic(wanted).items()
            ],
        )

        async def ask(connection: Connection) -> dict[TopicPartition, KafkaError | None]:
            answer = await connection.call(request, AlterShareGroupOffsetsResponse)
            check(answer.error_code, f"share group {group_id}", answer.error_message)
            found: dict[TopicPartition, KafkaError | None] = {}
            for topic in answer.responses:
                for row in topic.partitions:
                    key = TopicPartition(topic.topic_name, row.partition_index)
                    error = KafkaError(row.error_code, f"{key}", row.error_message)
                    found[key] = error if row.error_code else None
            return found

        return await self._share_lookup().call(group_id, ask, "alter share group offsets")

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str]
    ) -> dict[str, KafkaError | None]:
        """Have a share group without members forget topics; None where that is done."""
        request = DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
        )

        async def ask(connection: Connection) -> dict[str, KafkaError | None]:
            answer = await connection.call(request, DeleteShareGroupOffsetsResponse)
            check(answer.error_code, f"share group {group_id}", answer.error_message)
            return {
                row.topic_name: KafkaError(row.error_code, row.topic_name, row.error_message)
                if row.error_code
                else None
                for row in answer.responses
            }

        return await self._share_lookup().call(group_id, ask, "delete share group offsets")

    def _share_lookup(self) -> CoordinatorLookup:
        # The coordinator of share groups' members is the one of all groups.
        return CoordinatorLookup(self._cluster, CoordinatorType.GROUP)


def _description(group: DescribedGroup, coordinator: int) -> ShareGroupDescription:
    return ShareGroupDescription(
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
        coordinator,
        tuple(
            ShareMemberDescription(
                each.member_id,
                each.client_id,
                each.client_host,
                each.rack_id,
                each.member_epoch,
                frozenset(each.subscribed_topic_names),
                frozenset(
                    TopicPartition(topic.topic_name, index)
                    for topic in each.assignment.topic_partitions
                    for index in topic.partitions
                ),
            )
            for each in group.members
        ),
    )
