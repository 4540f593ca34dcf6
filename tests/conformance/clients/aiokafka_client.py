"""aiokafka: kafka-python's protocol of long ago on asyncio."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import IllegalStateError, KafkaError, for_code

from tests.conformance.clients.client import (
    EARLIEST,
    FETCH_WAIT_MS,
    LATEST,
    SECONDS_MAX,
    Acks,
    ClientError,
    Row,
)

Answer = TypeVar("Answer")


class Aiokafka:
    """A `Client` on aiokafka, with an event loop of its own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.runner = asyncio.Runner()

    def produce(
        self, topic: str, partition: int, rows: Sequence[Row], *, codec: str, acks: Acks
    ) -> None:
        self.runner.run(self._produce(topic, partition, rows, codec, acks))

    async def _produce(
        self, topic: str, partition: int, rows: Sequence[Row], codec: str, acks: Acks
    ) -> None:
        numbers: dict[Acks, int | str] = {"0": 0, "1": 1, "all": "all", "idempotent": "all"}
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.servers,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            acks=numbers[acks],
            enable_idempotence=acks == "idempotent",
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    row.value.encode(),
                    None if row.key is None else row.key.encode(),
                    partition,
                    row.timestamp,
                )
                for row in rows
            ]
            try:
                await asyncio.gather(*sent)
            except KafkaError as error:
                raise ClientError(str(error)) from None

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Row]:
        place = aiokafka.TopicPartition(topic, partition)

        async def consume(consumer: Any) -> list[Row]:
            consumer.assign([place])
            consumer.seek(place, offset)
            rows: list[Row] = []
            while len(rows) < count:
                got = await consumer.getmany(
                    timeout_ms=SECONDS_MAX * 1000, max_records=count - len(rows)
                )
                if not got:
                    raise ClientError(f"only {len(rows)} records")
                rows += [
                    Row(record.timestamp, record.key and record.key.decode(), record.value.decode())
                    for record in got[place]
                ]
            return rows

        return self._with_consumer(consume)

    def find_offset(self, topic: str, partition: int, timestamp: int) -> int:
        place = aiokafka.TopicPartition(topic, partition)

        async def find(consumer: Any) -> int:
            if timestamp == EARLIEST:
                return int((await consumer.beginning_offsets([place]))[place])
            if timestamp == LATEST:
                return int((await consumer.end_offsets([place]))[place])
            found = (await consumer.offsets_for_times({place: timestamp}))[place]
            return -1 if found is None else int(found.offset)

        return self._with_consumer(find)

    def list_topics(self) -> list[str]:
        return self._with_admin(lambda admin: admin.list_topics())

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        wanted = NewTopic(topic, partitions, 1, topic_configs=dict(configs))
        answer = self._with_admin(lambda admin: admin.create_topics([wanted]))
        _check(answer.topic_errors)

    def count_partitions(self, topic: str) -> int:
        [described] = self._with_admin(lambda admin: admin.describe_topics([topic]))
        if described["error_code"]:
            raise ClientError(for_code(described["error_code"]).__name__)
        assert all(partition["leader"] >= 0 for partition in described["partitions"])
        return len(described["partitions"])

    def get_config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        [answer] = self._with_admin(lambda admin: admin.describe_configs([resource]))
        [(_, message, _, _, entries)] = answer.resources
        assert not message, message
        return str(dict(entry[:2] for entry in entries)[name])

    def set_config(self, topic: str, name: str, value: str) -> None:
        # It has only AlterConfigs, which takes everything back that is not named.
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        [answer] = self._with_admin(lambda admin: admin.alter_configs([resource]))
        _check(answer.resources)

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: NewPartitions(total)}
        _check(self._with_admin(lambda admin: admin.create_partitions(wanted)).topic_errors)

    def delete_topic(self, topic: str) -> None:
        answer = self._with_admin(lambda admin: admin.delete_topics([topic]))
        _check(answer.topic_error_codes)

    def read_as_group(self, topic: str, group: str, count: int) -> set[str]:
        return self.runner.run(self._read_as_group(topic, group, count))

    async def _read_as_group(self, topic: str, group: str, count: int) -> set[str]:
        members = [
            aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=self.servers,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=300,
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            for _ in range(2)
        ]
        read: set[str] = set()
        async with asyncio.timeout(SECONDS_MAX):
            await asyncio.gather(*(member.start() for member in members))
            passed = 0
            # What changes hands is read again, and only whoever has it in the end commits it.
            while passed < count or not all(member.assignment() for member in members):
                for member in members:
                    for records in (await member.getmany(timeout_ms=50)).values():
                        read |= {f"{record.partition}:{record.offset}" for record in records}
                with suppress(IllegalStateError):  # of what is just being taken away
                    owned = [(member, place) for member in members for place in member.assignment()]
                    passed = sum([await member.position(place) for member, place in owned])
            for member in members:
                await member.commit()
            await asyncio.gather(*(member.stop() for member in members))
        return read

    def transact(self, topic: str, count: int) -> None:
        self.runner.run(self._transact(topic, count))

    async def _transact(self, topic: str, count: int) -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self.servers, transactional_id=topic)
        async with producer:
            for number in range(count):
                await producer.begin_transaction()
                await producer.send(topic, b"%d" % number, partition=0)
                offsets = {aiokafka.TopicPartition(topic, 0): number}
                await producer.send_offsets_to_transaction(offsets, topic)
                if number % 3 == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    def close(self) -> None:
        self.runner.close()

    def _with_consumer(self, use: Callable[[Any], Awaitable[Answer]]) -> Answer:
        async def run() -> Answer:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=self.servers,
                enable_auto_commit=False,
                check_crcs=True,
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            async with consumer:
                return await use(consumer)

        return self.runner.run(run())

    def _with_admin(self, use: Callable[[Any], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.servers)
            await admin.start()
            try:
                return await use(admin)
            finally:
                await admin.close()

        return self.runner.run(run())


def _check(results: Sequence[Sequence[Any]]) -> None:
    """Raise for the first result that is an error; aiokafka hands them out as they came."""
    for result in results:
        numbers = [field for field in result if isinstance(field, int)]
        if numbers and numbers[0]:
            words = [field for field in result if isinstance(field, str)]
            raise ClientError(f"{for_code(numbers[0]).__name__}: {' '.join(words)}")
