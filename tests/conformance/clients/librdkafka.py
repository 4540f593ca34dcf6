"""confluent-kafka: librdkafka from Python."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition, admin

from tests.conformance.clients.client import (
    FETCH_WAIT_MS,
    LATEST,
    SECONDS_MAX,
    Acks,
    ClientError,
    Row,
)


class Librdkafka:
    """A `Client` on confluent-kafka."""

    def __init__(self, servers: str) -> None:
        self.config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 3}
        self.admin = admin.AdminClient(self.config)
        self.consumer = confluent_kafka.Consumer(
            self.config
            | {"group.id": "unused", "check.crcs": True, "enable.auto.commit": False}
            | {"auto.offset.reset": "error", "fetch.wait.max.ms": FETCH_WAIT_MS}
        )

    def produce(
        self, topic: str, partition: int, rows: Sequence[Row], *, codec: str, acks: Acks
    ) -> None:
        failures: list[object] = []
        producer = confluent_kafka.Producer(
            self.config
            | {"compression.type": codec, "linger.ms": 50}
            | ({"enable.idempotence": True} if acks == "idempotent" else {"acks": acks})
        )
        for row in rows:
            producer.produce(
                topic,
                row.value,
                row.key,
                partition,
                timestamp=row.timestamp,
                on_delivery=lambda error, _: error and failures.append(error),
            )
        if producer.flush(SECONDS_MAX) or failures:
            raise ClientError(f"not delivered: {failures[:3]}")

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Row]:
        self.consumer.assign([TopicPartition(topic, partition, offset)])
        messages: list[Any] = []
        while len(messages) < count:
            got = self.consumer.consume(count - len(messages), timeout=SECONDS_MAX)
            if not got:
                raise ClientError(f"only {len(messages)} messages")
            messages += got
        if errors := [message.error() for message in messages if message.error()]:
            raise ClientError(str(errors[0]))
        self.consumer.unassign()
        return [
            Row(
                message.timestamp()[1],
                message.key() and message.key().decode(),
                message.value().decode(),
            )
            for message in messages
        ]

    def find_offset(self, topic: str, partition: int, timestamp: int) -> int:
        if timestamp < 0:
            partitions = TopicPartition(topic, partition)
            ends = self.consumer.get_watermark_offsets(partitions, timeout=SECONDS_MAX)
            return int(ends[timestamp == LATEST])
        wanted = TopicPartition(topic, partition, timestamp)
        [found] = self.consumer.offsets_for_times([wanted], timeout=SECONDS_MAX)
        return -1 if found.offset == confluent_kafka.OFFSET_END else found.offset

    def list_topics(self) -> list[str]:
        return list(self.admin.list_topics(timeout=SECONDS_MAX).topics)

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        wanted = admin.NewTopic(topic, partitions, 1, config=dict(configs))
        _result(self.admin.create_topics([wanted]))

    def count_partitions(self, topic: str) -> int:
        names = confluent_kafka.TopicCollection([topic])
        described = _result(self.admin.describe_topics(names))
        assert all(partition.leader.id >= 0 for partition in described.partitions)
        return len(described.partitions)

    def get_config(self, topic: str, name: str) -> str:
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        return str(_result(self.admin.describe_configs([resource]))[name].value)

    def set_config(self, topic: str, name: str, value: str) -> None:
        entry = admin.ConfigEntry(name, value, incremental_operation=admin.AlterConfigOpType.SET)
        resource = admin.ConfigResource(
            admin.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry]
        )
        _result(self.admin.incremental_alter_configs([resource]))

    def add_partitions(self, topic: str, total: int) -> None:
        _result(self.admin.create_partitions([admin.NewPartitions(topic, total)]))

    def delete_topic(self, topic: str) -> None:
        _result(self.admin.delete_topics([topic]))

    def close(self) -> None:
        self.consumer.close()


def _result(futures: Mapping[Any, Any]) -> Any:
    [future] = futures.values()
    try:
        return future.result(SECONDS_MAX)
    except confluent_kafka.KafkaException as error:
        raise ClientError(str(error)) from None
