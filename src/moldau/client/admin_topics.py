"""The admin client's part for topics: list, describe, create, grow, delete."""

from collections.abc import Iterable, Mapping, Sequence

from moldau.client.admin_base import PASSING, AdminBase
from moldau.client.admin_configs import config_text
from moldau.client.cluster import Topic
from moldau.client.connection import Connection
from moldau.client.descriptions import CreatedTopic, EligibleLeaders
from moldau.client.errors import KafkaError, check
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

DEFAULT = -1
"""As many partitions or replicas as the broker's settings say (KIP-464)."""


class TopicAdmin(AdminBase):
    """Topics and their partitions."""

    async def list_topics(self) -> dict[str, Topic]:
        """Return all topics with their partitions, by name; internal ones say so."""
        topics = await self._cluster.refresh(None)
        return dict(sorted(topics.items()))

    async def describe_topics(self, names: Iterable[str]) -> dict[str, Topic | KafkaError]:
        """Return these topics with their partitions; what is not there is an error in its place."""
        wanted = list(names)

        async def ask() -> dict[str, Topic | KafkaError]:
            return await self._cluster.ask_topics(wanted)

        return await self._cluster.retry(ask, "describe topics")

    async def eligible_leaders(self, topic: str) -> dict[int, EligibleLeaders]:
        """Return who may lead each partition of a topic beside those in sync (KIP-966).

        `KafkaError` UNSUPPORTED_VERSION from a broker before Kafka 3.9.
        """

        async def ask(connection: Connection) -> dict[int, EligibleLeaders]:
            request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
            found: dict[int, EligibleLeaders] = {}
            while True:
                answer = await connection.call(request, DescribeTopicPartitionsResponse)
                for row in answer.topics:
                    check(row.error_code, f"topic {topic}")
                    for each in row.partitions:
                        found[each.partition_index] = EligibleLeaders(
                            tuple(each.eligible_leader_replicas or ()),
                            tuple(each.last_known_elr or ()),
                        )
                if answer.next_cursor is None:
                    return found
                place = answer.next_cursor
                request.cursor = Cursor(
                    topic_name=place.topic_name, partition_index=place.partition_index
                )

        return await self._ask_any(ask, f"describe topic {topic}")

    async def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, object] | None = None,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create a topic, and return when it can be used.

        Without numbers it has as many partitions and replicas as the broker's settings say.
        `assignments` says which brokers have each partition, and stands for both numbers.
        """
        topic = CreatableTopic(
            name=name,
            num_partitions=DEFAULT if partitions is None else partitions,
            replication_factor=DEFAULT if replication_factor is None else replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                for index, brokers in (assignments or {}).items()
            ],
            configs=[
                CreatableTopicConfig(name=key, value=config_text(value))
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(
            topics=[topic],
            timeout_ms=self._cluster.settings.request_timeout_ms,
            validate_only=validate_only,
        )

        async def ask(connection: Connection) -> CreatedTopic:
            row = (await connection.call(request, CreateTopicsResponse)).topics[0]
            check(row.error_code, f"topic {name}", row.error_message)
            return CreatedTopic(
                row.name,
                row.topic_id,
                row.num_partitions,
                row.replication_factor,
                {each.name: each.value for each in row.configs or ()},
            )

        created = await self._ask_controller(ask, f"create topic {name}")
        if not validate_only:
            await self._wait_until_known(created)
        return created

    async def _wait_until_known(self, created: CreatedTopic) -> None:
        """Brokers hear of a topic a little later than the controller has decided."""

        async def ask() -> None:
            topic = (await self._cluster.ask_topics([created.name]))[created.name]
            if isinstance(topic, KafkaError):
                raise topic

        await self._cluster.retry(ask, f"topic {created.name}")

    async def create_partitions(
        self,
        topic: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Give a topic more partitions, `total` with those that it has.

        `assignments` says which brokers have each of the new ones.
        """
        placed = None
        if assignments is not None:
            placed = [CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments]
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=total, assignments=placed)],
            timeout_ms=self._cluster.settings.request_timeout_ms,
            validate_only=validate_only,
        )

        async def ask(connection: Connection) -> None:
            row = (await connection.call(request, CreatePartitionsResponse)).results[0]
            check(row.error_code, f"topic {topic}", row.error_message)

        await self._ask_controller(ask, f"create partitions of {topic}")
        self._cluster.forget(topic)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete topics; each is gone (None) or has an error."""
        wanted = list(names)

        async def ask(connection: Connection) -> dict[str, KafkaError | None]:
            request = DeleteTopicsRequest(
                topic_names=wanted, timeout_ms=self._cluster.settings.request_timeout_ms
            )
            if connection.version_of(DeleteTopicsRequest) >= 6:
                request.topics = [DeleteTopicState(name=name) for name in wanted]
            rows = (await connection.call(request, DeleteTopicsResponse)).responses
            answers = {}
            for row in rows:
                error = None
                if row.error_code:
                    error = KafkaError(row.error_code, f"topic {row.name}", row.error_message)
                answers[row.name or ""] = error
            first = next(iter(answers.values()), None)
            if first is not None and first.code in PASSING:
                raise first
            return answers

        answers = await self._ask_controller(ask, f"delete topics {', '.join(wanted)}")
        for name in wanted:
            self._cluster.forget(name)
        return answers
