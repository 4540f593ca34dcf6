"""The admin client's part for partitions: offsets, deleting records, producers."""

from collections.abc import Iterable, Mapping
from typing import Literal

from moldau.client.admin_base import AdminBase
from moldau.client.connection import Connection
from moldau.client.descriptions import ActiveProducer, ListedOffset
from moldau.client.errors import KafkaError
from moldau.client.leaders import LeaderAnswers, ask_leaders, by_topic
from moldau.client.offset_lookup import ISOLATION_LEVELS, list_offsets, timestamp_of
from moldau.kernel.ids import TopicPartition
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)


class PartitionAdmin(AdminBase):
    """What only the leaders of partitions know and do."""

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, str | int],
        *,
        isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        """Look up an offset for each partition, or an error in its place.

        A spec is "earliest", "latest", "max-timestamp", "earliest-local", "latest-tiered", or a
        time in milliseconds, for the first record that is as late.
        """
        timestamps = {TopicPartition(*key): timestamp_of(spec) for key, spec in specs.items()}
        level = ISOLATION_LEVELS[isolation_level]
        return await list_offsets(self._cluster, timestamps, isolation_level=level)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete the records before an offset of each partition, all for -1.

        Returns where each partition begins now, or an error in its place.
        """
        timeout_ms = self._cluster.settings.request_timeout_ms

        async def ask(
            connection: Connection, group: Mapping[TopicPartition, tuple[int, int]]
        ) -> LeaderAnswers[int]:
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=name,
                        partitions=[
                            DeleteRecordsPartition(partition_index=index, offset=offset)
                            for index, (offset, _) in partitions.items()
                        ],
                    )
                    for name, partitions in by_topic(group).items()
                ],
                timeout_ms=timeout_ms,
            )
            answer = await connection.call(request, DeleteRecordsResponse)
            found: LeaderAnswers[int] = {}
            for topic in answer.topics:
                for row in topic.partitions:
                    key = TopicPartition(topic.name, row.partition_index)
                    found[key] = row.low_watermark
                    if row.error_code:
                        found[key] = KafkaError(row.error_code, f"partition {key}")
            return found

        wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}
        return await ask_leaders(self._cluster, wanted, ask)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...] | KafkaError]:
        """Return the producers that each partition remembers, or an error in its place.

        The leaders are asked, or one broker that has replicas.
        """

        async def ask(
            connection: Connection, group: Mapping[TopicPartition, tuple[None, int]]
        ) -> LeaderAnswers[tuple[ActiveProducer, ...]]:
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=name, partition_indexes=list(indexes))
                    for name, indexes in by_topic(group).items()
                ]
            )
            answer = await connection.call(request, DescribeProducersResponse)
            found: LeaderAnswers[tuple[ActiveProducer, ...]] = {}
            for topic in answer.topics:
                for row in topic.partitions:
                    key = TopicPartition(topic.name, row.partition_index)
                    if row.error_code:
                        what = f"partition {key}"
                        found[key] = KafkaError(row.error_code, what, row.error_message)
                        continue
                    found[key] = tuple(
                        ActiveProducer(
                            each.producer_id,
                            each.producer_epoch,
                            each.last_sequence,
                            each.last_timestamp,
                            each.coordinator_epoch,
                            each.current_txn_start_offset,
                        )
                        for each in row.active_producers
                    )
            return found

        wanted = {TopicPartition(*key): None for key in partitions}
        if broker_id is None:
            return await ask_leaders(self._cluster, wanted, ask)
        there = dict.fromkeys(wanted, (None, -1))
        what = f"producers at broker {broker_id}"
        return await self._ask_node(broker_id, lambda each: ask(each, there), what)
