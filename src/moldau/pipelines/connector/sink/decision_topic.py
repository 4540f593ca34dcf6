"""The topic with the ledgers of all queries: one partition, compacted."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from moldau.client.admin import Admin
from moldau.client.committed_fetch import (
    FetchedTail,
    FetchPlace,
    fetch_committed,
    find_first_place,
)
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.kept_clients import KeptClients
from moldau.pipelines.connector.sink.errors import SinkError
from moldau.pipelines.connector.sink.ledger import EMPTY, Ledger, decode
from moldau.pipelines.connector.sink.ledger_copy import LedgerCopy
from moldau.pipelines.connector.sink.names import JOB_PREFIX
from moldau.protocol.errors import ErrorCode

CONFIGS: Final = {
    "cleanup.policy": "compact",
    # A task that reads it first reads all of it: small segments are compacted soon.
    "segment.bytes": 1 << 20,
    "min.cleanable.dirty.ratio": 0.1,
}
ABANDONED_MS: Final = 60_000
"""A driver that lives finishes what it has decided in less than this, or tries to."""
READ_SECONDS_MAX: Final = 60.0
PAUSE_SECONDS: Final = 0.005
PAUSE_SECONDS_MAX: Final = 0.2
CHECK_SECONDS: Final = 60.0
"""How long it is believed that the topic keeps what it is told."""


class DecisionTopic:
    """Reads ledgers, and makes the topic for them."""

    def __init__(self, clients: KeptClients, name: str) -> None:
        self._clients = clients
        self._cluster = clients.cluster
        self._name = name
        self._place = TopicPartition(name, 0)
        self._copy = clients.keep((LedgerCopy, name), LedgerCopy)
        self._abandoned: list[str] = []

    def ensure(self) -> None:
        """Create the topic, or check that the one that is there keeps what it is told."""
        if time.monotonic() - self._copy.checked_at < CHECK_SECONDS:
            return
        admin = self._clients.admin
        if isinstance(admin.describe_topics([self._name])[self._name], KafkaError):
            try:
                admin.create_topic(self._name, 1, configs=CONFIGS)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
        policy = self._find_policy(admin)
        if policy != "compact":
            raise SinkError(
                f"topic {self._name} has cleanup.policy={policy}, and would forget decisions: set "
                "it to compact, or name another topic with decisionTopic"
            )
        self._copy.checked_at = time.monotonic()

    def _find_policy(self, admin: Admin) -> str | None:
        """Return the topic's cleanup.policy; a broker may hear late of a topic that was created."""
        resource = ConfigResource(ResourceType.TOPIC, self._name)
        deadline = time.monotonic() + READ_SECONDS_MAX
        while True:
            found = admin.describe_configs([resource], keys=["cleanup.policy"])[resource]
            if not isinstance(found, KafkaError):
                return found["cleanup.policy"].value
            is_late = found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not is_late or time.monotonic() > deadline:
                raise found
            time.sleep(PAUSE_SECONDS_MAX)

    def read(self, key: str) -> Ledger:
        """Return what is committed so far."""
        try:
            self._clients.run(self._read_on(waits=False))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return EMPTY
        return self._take(key)

    def read_all(self, key: str) -> Ledger:
        """Return what was written so far, waiting for the ends of transactions."""
        self._clients.run(self._read_on(waits=True))
        return self._take(key)

    def find_abandoned(self) -> Sequence[str]:
        """Return the batch writes that the last reading has found undone since a while."""
        return self._abandoned

    async def _read_on(self, *, waits: bool) -> None:
        """Read to the end of what is committed, or of the log."""
        deadline = time.monotonic() + READ_SECONDS_MAX

        async def attempt() -> None:
            pause = PAUSE_SECONDS
            with closing(self._copy.read_on(time.monotonic, waits=waits)) as reading:
                place = next(reading)
                while True:
                    tail = await self._fetch(place)
                    try:
                        place = reading.send(tail)
                    except StopIteration:
                        return
                    if tail.is_empty:
                        if time.monotonic() > deadline:
                            end = tail.high_watermark
                            raise SinkError(
                                f"topic {self._name}: an open transaction holds up offset {end}"
                            )
                        await asyncio.sleep(pause)
                        pause = min(2 * pause, PAUSE_SECONDS_MAX)

        await self._cluster.retry(
            attempt, f"topic {self._name}", timeout_ms=int(2000 * READ_SECONDS_MAX)
        )

    async def _fetch(self, place: FetchPlace | None) -> FetchedTail:
        try:
            place = place or await find_first_place(self._cluster, self._place)
            return await fetch_committed(self._cluster, self._place, place)
        except KafkaError:
            self._cluster.forget(self._name)
            raise

    def _take(self, key: str) -> Ledger:
        limit_ms = time.time() * 1000 - ABANDONED_MS
        ledgers = self._copy.ledgers
        self._abandoned = [
            name
            for name, each in ledgers.items()
            if name.startswith(JOB_PREFIX) and name != key and each.written_ms < limit_ms
        ]
        return decode(ledgers[key].value) if key in ledgers else EMPTY
