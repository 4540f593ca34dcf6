"""kafka-python: the oldest client in pure Python."""

import time
from collections.abc import Mapping, Sequence

import kafka
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from tests.conformance.clients.client import (
    EARLIEST,
    FETCH_WAIT_MS,
    LATEST,
    SECONDS_MAX,
    Acks,
    ClientError,
    Row,
)


class KafkaPython:
    """A `Client` on kafka-python."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=servers)
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers,
            enable_auto_commit=False,
            check_crcs=True,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )

    def produce(
        self, topic: str, partition: int, rows: Sequence[Row], *, codec: str, acks: Acks
    ) -> None:
        numbers: dict[Acks, int | str] = {"0": 0, "1": 1, "all": "all", "idempotent": "all"}
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.servers,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            acks=numbers[acks],
            enable_idempotence=acks == "idempotent",
        )
        sent = [
            producer.send(
                topic,
                row.value.encode(),
                None if row.key is None else row.key.encode(),
                partition=partition,
                timestamp_ms=row.timestamp,
            )
            for row in rows
        ]
        try:
            producer.flush(SECONDS_MAX)
            for future in sent:
                future.get(SECONDS_MAX)
        except KafkaError as error:
            raise ClientError(str(error)) from None
        finally:
            producer.close()

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Row]:
        place = kafka.TopicPartition(topic, partition)
        self.consumer.assign([place])
        self.consumer.seek(place, offset)
        rows: list[Row] = []
        while len(rows) < count:
            got = self.consumer.poll(SECONDS_MAX * 1000, max_records=count - len(rows))
            if not got:
                raise ClientError(f"only {len(rows)} records")
            rows += [
                Row(record.timestamp, record.key and record.key.decode(), record.value.decode())
                for record in got[place]
            ]
        return rows

    def find_offset(self, topic: str, partition: int, timestamp: int) -> int:
        place = kafka.TopicPartition(topic, partition)
        if timestamp == EARLIEST:
            return int(self.consumer.beginning_offsets([place])[place])
        if timestamp == LATEST:
            return int(self.consumer.end_offsets([place])[place])
        found = self.consumer.offsets_for_times({place: timestamp})[place]
        return -1 if found is None else int(found.offset)

    def list_topics(self) -> list[str]:
        return list(self.admin.list_topics())

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(configs)}
        try:
            self.admin.create_topics({topic: wanted})
        except KafkaError as error:
            raise ClientError(str(error)) from None

    def count_partitions(self, topic: str) -> int:
        [described] = self.admin.describe_topics([topic])
        if described["error_code"]:
            raise ClientError(f"error {described['error_code']}")
        assert all(partition["leader_id"] >= 0 for partition in described["partitions"])
        return len(described["partitions"])

    def get_config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self.admin.describe_configs([resource], config_filter="all")
        [[configs]] = [by_name.values() for by_name in described.values()]
        return str(configs[name]["value"])

    def set_config(self, topic: str, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        self.admin.alter_configs([resource])

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions({topic: total})

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def read_as_group(self, topic: str, group: str, count: int) -> set[str]:
        members = [
            kafka.KafkaConsumer(
                bootstrap_servers=self.servers,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=300,
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            for _ in range(2)
        ]
        for member in members:
            # A leader that does not know the topic yet may give everybody nothing for long.
            assert member.partitions_for_topic(topic)
            member.subscribe([topic])
        read: set[str] = set()
        deadline = time.monotonic() + SECONDS_MAX
        try:
            passed = 0
            # What changes hands is read again, and only whoever has it in the end commits it.
            is_committed = False
            while not is_committed:
                assert time.monotonic() < deadline, (passed, len(read))
                for member in members:
                    for records in member.poll(50).values():
                        read |= {f"{record.partition}:{record.offset}" for record in records}
                owned = [(member, place) for member in members for place in member.assignment()]
                passed = sum(member.position(place) or 0 for member, place in owned)
                if passed >= count and all(member.assignment() for member in members):
                    is_committed = all(map(_try_commit, members))
        finally:
            for member in members:
                member.close()
        return read

    def transact(self, topic: str, count: int) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.servers, transactional_id=topic)
        producer.init_transactions()
        for number in range(count):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            offsets = {kafka.TopicPartition(topic, 0): OffsetAndMetadata(number, "", -1)}
            producer.send_offsets_to_transaction(offsets, topic)
            if number % 3 == 1:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()

    def close(self) -> None:
        self.admin.close()
        self.consumer.close()


def _try_commit(member: kafka.KafkaConsumer) -> bool:
    """Commit, unless the group rebalances: then the next poll takes part in it."""
    try:
        member.commit()
    except RebalanceInProgressError:
        return False
    return True
