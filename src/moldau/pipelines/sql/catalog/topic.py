"""The catalog's topic: compacted, written in transactions, read back at the start."""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Final, Self, cast

from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import (
    AbortableTransactionError,
    ClientError,
    KafkaError,
    ProducerFencedError,
)
from moldau.pipelines.errors import PipelineError, RetriableError
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.catalog.definitions import CatalogChange, DefinitionValue
from moldau.protocol.errors import ErrorCode

READ_SECONDS_MAX: Final = 60.0
TRANSACTION_MS_MAX: Final = 10_000
"""What a killed server leaves open ends after this, unless its successor is there before."""


class CatalogLostError(PipelineError):
    """Another server has taken over, or what was written is not known: this one must end."""


class CatalogTopic:
    """Appends changes all or none; whoever opens it fences those who did before."""

    def __init__(self, servers: str, service: str) -> None:
        self._servers = servers
        self.name = topic_name(service)
        self._producer: Producer | None = None
        self._ensure()

    def open(self) -> None:
        """Be the one who writes: an older server cannot any more, and what it left open is ended.

        What is read from now on is all that there is.
        """
        self._producer = Producer(
            self._servers,
            transactional_id=self.name,
            transaction_timeout_ms=TRANSACTION_MS_MAX,
            linger_ms=0,
        )
        self._producer.init_transactions()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        if self._producer is not None:
            self._producer.close()

    def append(self, changes: Iterable[CatalogChange]) -> None:
        """Write changes, all of them or none.

        After a `CatalogLostError` they may be there or not; only who reads the topic knows.
        """
        producer = self._producer
        assert producer is not None, "only who has opened it writes"
        try:
            with producer.transaction():
                for key, value in changes:
                    text = None if value is None else json.dumps(value, ensure_ascii=False)
                    data = None if text is None else text.encode()
                    producer.send(self.name, data, key.encode(), partition=0)
        except AbortableTransactionError as error:
            raise RetriableError(f"{self.name} was not written, try again: {error}") from error
        except ProducerFencedError as error:
            raise CatalogLostError(
                f"another server writes to {self.name} now, this one ends"
            ) from error
        except ClientError as error:
            # A producer made anew would know more, and would fence a server that has taken over.
            raise CatalogLostError(
                f"whether {self.name} was written is not known, the server ends; start it again: "
                f"{error}"
            ) from error

    def read(self) -> Iterator[tuple[str, DefinitionValue | None]]:
        """Yield all committed changes, the oldest first."""
        place = TopicPartition(self.name, 0)
        with Consumer(
            self._servers, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([place])
            end = consumer.end_offsets([place])[place]
            deadline = time.monotonic() + READ_SECONDS_MAX
            # Markers have offsets, too: the position passes them, the records do not.
            while consumer.position(place) < end:
                for record in consumer.poll(timeout_ms=500):
                    yield _read(record.key, record.value)
                if time.monotonic() > deadline:
                    raise RetriableError(
                        f"{self.name} could not be read to its end within {READ_SECONDS_MAX:g} s"
                    )

    def _ensure(self) -> None:
        with Admin(self._servers) as admin:
            try:
                admin.create_topic(self.name, partitions=1, configs={"cleanup.policy": "compact"})
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            _require_compacted(admin, self.name)


def _require_compacted(admin: Admin, name: str) -> None:
    """A broker may have made the topic by itself, or somebody by hand; it would forget."""
    if len(admin.list_topics()[name].partitions) != 1:
        raise PipelineError(f"topic {name} has several partitions, the catalog's has one")
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = admin.describe_configs([resource])[resource]
    if isinstance(found, KafkaError):
        raise found
    if found["cleanup.policy"].value != "compact":
        raise PipelineError(
            f"topic {name} has cleanup.policy={found['cleanup.policy'].value}, and would forget "
            "what was defined: set it to compact"
        )


def load_catalog(topic: CatalogTopic) -> Catalog:
    """Return what a topic says is defined."""
    catalog = Catalog()
    for key, value in topic.read():
        catalog.replay(key, value)
    return catalog


def topic_name(service: str) -> str:
    """Return the name of a service's topic, of its group and of its transactional id."""
    return f"_moldau_sql_{service}"


def _read(key: bytes | None, value: bytes | None) -> tuple[str, DefinitionValue | None]:
    return (key or b"").decode(), None if value is None else cast(
        "DefinitionValue", json.loads(value)
    )
