"""The admin client's part for the cluster: brokers, directories, features."""

from collections.abc import Iterable

from moldau.client.admin_base import AdminBase
from moldau.client.cluster import Node
from moldau.client.connection import Connection, hello
from moldau.client.descriptions import (
    ClusterDescription,
    FeaturesDescription,
    LogDirectory,
    ReplicaSize,
)
from moldau.client.errors import ClientError, KafkaError, check
from moldau.kernel.ids import TopicPartition
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class ClusterAdmin(AdminBase):
    """The brokers and what they can do."""

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, its controller and its brokers."""

        async def ask(connection: Connection) -> ClusterDescription:
            answer = await connection.call(DescribeClusterRequest(), DescribeClusterResponse)
            check(answer.error_code, "describe cluster", answer.error_message)
            nodes = [
                Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers
            ]
            nodes.sort(key=lambda node: node.node_id)
            return ClusterDescription(answer.cluster_id, answer.controller_id, tuple(nodes))

        return await self._ask_any(ask, "describe cluster")

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, topics: Iterable[str] | None = None
    ) -> dict[int, tuple[LogDirectory, ...] | ClientError]:
        """Return the log directories of brokers, of all for None, or an error in a broker's place.

        `topics` asks for the replicas of some topics only.
        """
        wanted = None
        if topics is not None:
            known = await self._cluster.refresh(topics)
            wanted = [
                DescribableLogDirTopic(
                    topic=topic.name, partitions=[each.index for each in topic.partitions]
                )
                for topic in known.values()
            ]
        request = DescribeLogDirsRequest(topics=wanted)

        async def ask(connection: Connection) -> tuple[LogDirectory, ...]:
            answer = await connection.call(request, DescribeLogDirsResponse)
            check(answer.error_code, f"log directories at {connection.address}")
            return tuple(map(_directory, answer.results))

        answers: dict[int, tuple[LogDirectory, ...] | ClientError] = {}
        for node_id in sorted(self._cluster.nodes) if brokers is None else brokers:
            try:
                answers[node_id] = await self._ask_node(node_id, ask, "describe log directories")
            except ClientError as error:
                answers[node_id] = error
        return answers

    async def describe_features(self, broker: int | None = None) -> FeaturesDescription:
        """Return the feature levels that a broker supports, and the cluster's."""

        async def ask(connection: Connection) -> FeaturesDescription:
            answer = await connection.call(hello(), ApiVersionsResponse)
            check(answer.error_code, "describe features")
            return FeaturesDescription(
                {
                    each.name: (each.min_version, each.max_version)
                    for each in answer.supported_features
                },
                {each.name: each.max_version_level for each in answer.finalized_features},
                answer.finalized_features_epoch,
            )

        if broker is None:
            return await self._ask_any(ask, "describe features")
        return await self._ask_node(broker, ask, "describe features")


def _directory(row: DescribeLogDirsResult) -> LogDirectory:
    error = KafkaError(row.error_code, row.log_dir) if row.error_code else None
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaSize(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in row.topics
        for each in topic.partitions
    }
    return LogDirectory(row.log_dir, error, row.total_bytes, row.usable_bytes, replicas)
