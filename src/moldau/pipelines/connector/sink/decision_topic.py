"""The topic with the ledgers of all queries: one partition, compacted."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.opening import open_client
from moldau.pipelines.connector.sink.errors import SinkError
from moldau.pipelines.connector.sink.ledger import EMPTY, Ledger, decode
from moldau.pipelines.connector.sink.names import JOB_PREFIX
from moldau.protocol.errors import ErrorCode

CONFIGS: Final = {
    "cleanup.policy": "compact",
    # Whoever reads, reads all of it: small segments are compacted soon.
    "segment.bytes": 1 << 20,
    "min.cleanable.dirty.ratio": 0.1,
}
ABANDONED_MS: Final = 60_000
"""A driver that lives finishes what it has decided in less than this, or tries to."""
READ_SECONDS_MAX: Final = 60.0
POLL_MS: Final = 1000


class DecisionTopic:
    """Reads ledgers, and makes the topic for them."""

    def __init__(self, admin: Admin, name: str, client_config: Mapping[str, str]) -> None:
        self._admin = admin
        self._name = name
        self._config = client_config
        self._place = TopicPartition(name, 0)
        self._abandoned: list[str] = []

    def ensure(self) -> None:
        """Create the topic, or check that the one that is there keeps what it is told."""
        if not self._exists():
            try:
                self._admin.create_topic(self._name, 1, configs=CONFIGS)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
        resource = ConfigResource(ResourceType.TOPIC, self._name)
        found = self._admin.describe_configs([resource], keys=["cleanup.policy"])[resource]
        if isinstance(found, KafkaError):
            raise found
        policy = found["cleanup.policy"].value
        if policy != "compact":
            raise SinkError(
                f"topic {self._name} has cleanup.policy={policy}, and would forget decisions: set "
                "it to compact, or name another topic with decisionTopic"
            )

    def read(self, key: str) -> Ledger:
        """Return what is committed so far."""
        return self._read(key, "read_committed") if self._exists() else EMPTY

    def read_all(self, key: str) -> Ledger:
        """Return what was written so far, waiting for the ends of transactions."""
        return self._read(key, "read_uncommitted")

    def find_abandoned(self) -> Sequence[str]:
        """Return the batch writes that the last reading has found undone since a while."""
        return self._abandoned

    def _exists(self) -> bool:
        found = self._admin.describe_topics([self._name])[self._name]
        if not isinstance(found, KafkaError):
            return True
        if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        raise found

    def _read(self, key: str, end_of: Literal["read_committed", "read_uncommitted"]) -> Ledger:
        """Read up to an end, which is either the last stable offset or the high watermark."""
        newest: dict[str, tuple[int, bytes]] = {}
        listed = self._admin.list_offsets({self._place: "latest"}, isolation_level=end_of)
        end = listed[self._place]
        if isinstance(end, KafkaError):
            raise end
        deadline = time.monotonic() + READ_SECONDS_MAX
        with open_client(
            Consumer,
            config=self._config,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([self._place])
            while consumer.position(self._place) < end.offset:
                if time.monotonic() > deadline:
                    raise SinkError(
                        f"topic {self._name}: an open transaction holds up offset {end.offset}"
                    )
                for record in consumer.poll(timeout_ms=POLL_MS):
                    name = (record.key or b"").decode()
                    if record.value is None:
                        newest.pop(name, None)
                    else:
                        newest[name] = record.timestamp_ms, bytes(record.value)
        return self._take(key, newest)

    def _take(self, key: str, newest: Mapping[str, tuple[int, bytes]]) -> Ledger:
        limit_ms = time.time() * 1000 - ABANDONED_MS
        self._abandoned = [
            name
            for name, (written_ms, _) in newest.items()
            if name.startswith(JOB_PREFIX) and name != key and written_ms < limit_ms
        ]
        return decode(newest[key][1]) if key in newest else EMPTY
