"""The broker, as statements need it: topics, and records that `INSERT ... VALUES` writes."""

import threading
from collections.abc import Mapping, Sequence

from moldau import Admin, Producer
from moldau.client.errors import KafkaError
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.ports import OutRecord, TopicSummary
from moldau.pipelines.sql.relations import Relation, RelationKind
from moldau.protocol.errors import ErrorCode


class KafkaCluster:
    """Speaks with the broker; the producer is made when something is first written."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._admin = Admin(servers)
        self._producer: Producer | None = None
        self._making = threading.Lock()

    def close(self) -> None:
        """Hang up."""
        with self._making:
            if self._producer is not None:
                self._producer.close()
        self._admin.close()

    def topics(self) -> Sequence[TopicSummary]:
        """Return all topics, by name."""
        return [
            TopicSummary(name, len(topic.partitions), len(topic.partitions[0].replicas))
            for name, topic in sorted(self._admin.list_topics().items())
        ]

    def ensure_topic(self, relation: Relation, *, may_create: bool) -> None:
        """Have a relation's topic; `PipelineError` if it is not there and may not be created."""
        found = self._admin.describe_topics([relation.topic])[relation.topic]
        if not isinstance(found, KafkaError):
            return
        if found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise found
        if not may_create:
            close = close_matches(relation.topic, self._admin.list_topics())
            raise PipelineError(
                f"there is no topic {relation.topic}{close or '.'} With partitions=1, or more, it "
                "is created"
            )
        try:
            self._admin.create_topic(
                relation.topic, relation.partitions, configs=_configs(relation)
            )
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def delete_topic(self, name: str) -> None:
        """Delete it, if it is there."""
        error = self._admin.delete_topics([name])[name]
        if error is not None and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PipelineError(f"topic {name} was not deleted: {error}") from error

    def write(self, topic: str, records: Sequence[OutRecord]) -> None:
        """Return when all records are stored."""
        with self._making:
            if self._producer is None:
                self._producer = Producer(self._servers)
            producer = self._producer
        deliveries = [
            producer.send(topic, each.value, each.key, timestamp_ms=each.timestamp_ms)
            for each in records
        ]
        for delivery in deliveries:
            delivery.result()


def _configs(relation: Relation) -> Mapping[str, object]:
    """A table is the latest record of each key; others may go."""
    return {"cleanup.policy": "compact"} if relation.kind is RelationKind.TABLE else {}
