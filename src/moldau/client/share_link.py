"""A share consumer's way to one broker: its session, and the records that it holds from there."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau._native.fetched import Record
from moldau._native.records import read_batches
from moldau.client.acknowledgements import Acknowledged, AcknowledgeType, Acks, HeldRecords
from moldau.client.chunk import Chunk
from moldau.client.cluster import Cluster, Node
from moldau.client.committed import visible
from moldau.client.connection import Connection
from moldau.client.errors import (
    ClientError,
    KafkaError,
    RequestTimeoutError,
    UnreachableError,
)
from moldau.client.share_requests import acknowledge_request, fetch_request
from moldau.client.share_session import SharePartitionKey, ShareSessionHandler
from moldau.client.share_settings import ShareSettings
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from moldau.protocol.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)

LANE: Final = "share"
RENEWAL_SINCE: Final = 2
LOST: Final = "its session has ended since, and the records are handed out again"


@dataclass(slots=True)
class ShareFetched:
    """What one answer brought."""

    records: list[Record] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    errors: list[ClientError] = field(default_factory=list)
    """What the user has to know."""
    is_fine: bool = True
    """Whether more can be asked for at once; else something was refused that may pass."""


class ShareLink:
    """One session; its requests are made one after the other, as their epochs demand."""

    def __init__(
        self, cluster: Cluster, settings: ShareSettings, member_id: str, node_id: int
    ) -> None:
        self.node_id = node_id
        self.generation = 0
        """Changes when a session ends, and with it the hold on everything that waits."""
        self.lock_timeout_ms: int | None = None
        self._cluster = cluster
        self._settings = settings
        self._member_id = member_id
        self._session = ShareSessionHandler()
        self._lock = asyncio.Lock()
        self._held: dict[SharePartitionKey, HeldRecords] = {}
        self._keys: dict[TopicPartition, SharePartitionKey] = {}
        self._names: dict[SharePartitionKey, TopicPartition] = {}

    # What users hold.

    def held(self, partition: TopicPartition) -> HeldRecords | None:
        """Return what is held of a partition."""
        key = self._keys.get(partition)
        return None if key is None else self._held.get(key)

    @property
    def has_unsaid(self) -> bool:
        """Whether a record that was handed out is not acknowledged."""
        return any(held.has_unsaid for held in self._held.values())

    @property
    def has_said(self) -> bool:
        """Whether acknowledgements wait to be sent."""
        return any(held.has_said for held in self._held.values())

    @property
    def is_open(self) -> bool:
        """Whether the broker has a session for it."""
        return self._session.is_open

    def accept_all(self) -> None:
        """Accept whatever nothing was said of."""
        for held in self._held.values():
            held.accept_all()

    # Requests.

    async def fetch(self, wanted: Mapping[SharePartitionKey, TopicPartition]) -> ShareFetched:
        """Tell what was done with the last records, and acquire more."""
        async with self._lock:
            fetched = ShareFetched(acknowledged=self._take_in_vain())
            acks = self._take()
            if any(each.has_renewals for each in acks.values()):
                fetched.acknowledged += await self._send_acks(acks)
                acks = {}
            self._names.update(wanted)
            self._keys.update({name: key for key, name in wanted.items()})
            request = self._session.next_fetch(wanted, acks)
            message = fetch_request(self._settings, self._member_id, request)
            try:
                connection = await self._connect()
                version = connection.version_of(ShareFetchRequest)
                answer = await connection.call(message, ShareFetchResponse, version)
                if answer.error_code:
                    what = f"ShareFetch at {connection.address}"
                    raise KafkaError(answer.error_code, what, answer.error_message)
            except ClientError as error:
                self._lose()
                fetched.acknowledged += self._all(acks, error)
                fetched.is_fine = False
                if not may_pass(error):
                    fetched.errors.append(error)
                for name in wanted.values():
                    self._cluster.forget(name.topic)
                return fetched
            self._session.answered()
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
            self._read(answer, acks, fetched)
            return fetched

    async def acknowledge(self) -> list[Acknowledged]:
        """Tell what was done with records, and ask for none."""
        async with self._lock:
            return self._take_in_vain() + await self._send_acks(self._take())

    async def close(self) -> list[Acknowledged]:
        """Tell what was done, and let everything else go to others."""
        async with self._lock:
            acknowledged = self._take_in_vain()
            acks = self._take()
            if self._session.is_open:
                acknowledged += await self._send_acks(acks, is_last=True)
                self._lose()
            return acknowledged

    def _take(self) -> dict[SharePartitionKey, Acks]:
        taken = {key: held.take() for key, held in self._held.items()}
        return {key: acks for key, acks in taken.items() if acks.batches}

    def _take_in_vain(self) -> list[Acknowledged]:
        error = KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, f"broker {self.node_id}", LOST)
        taken = {key: held.take_in_vain() for key, held in self._held.items()}
        return [Acknowledged(self._names[key], taken[key], error) for key in taken if taken[key]]

    async def _send_acks(
        self, acks: Mapping[SharePartitionKey, Acks], *, is_last: bool = False
    ) -> list[Acknowledged]:
        if not acks and not is_last:
            return []
        has_renewals = any(each.has_renewals for each in acks.values())
        group_id = self._settings.group_id
        epoch = -1 if is_last else self._session.epoch
        message = acknowledge_request(
            group_id, self._member_id, epoch, acks, has_renewals=has_renewals
        )
        try:
            connection = await self._connect()
            version = connection.version_of(ShareAcknowledgeRequest)
            if has_renewals and version < RENEWAL_SINCE:
                what = f"ShareAcknowledge at {connection.address}"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what, "it cannot renew locks")
            answer = await connection.call(message, ShareAcknowledgeResponse, version)
            if answer.error_code:
                what = f"ShareAcknowledge at {connection.address}"
                raise KafkaError(answer.error_code, what, answer.error_message)
        except ClientError as error:
            self._lose()
            return self._all(acks, error)
        self._session.answered()
        codes = {
            (topic.topic_id, row.partition_index): (row.error_code, row.error_message)
            for topic in answer.responses
            for row in topic.partitions
        }
        return [self._one(key, acks[key], *codes.get(key, (0, None))) for key in acks]

    async def _connect(self) -> Connection:
        return await self._cluster.connect(self.node_id, LANE)

    def _lose(self) -> None:
        self._session.lost()
        self.generation += 1
        for held in self._held.values():
            held.lose()

    # Answers.

    def _all(self, acks: Mapping[SharePartitionKey, Acks], error: Exception) -> list[Acknowledged]:
        return [Acknowledged(self._names[key], acks[key].offsets, error) for key in acks]

    def _one(
        self, key: SharePartitionKey, acks: Acks, code: int, message: str | None
    ) -> Acknowledged:
        name = self._names[key]
        error = KafkaError(code, f"acknowledgements for {name}", message) if code else None
        return Acknowledged(name, acks.offsets, error)

    def _read(
        self, answer: ShareFetchResponse, acks: Mapping[SharePartitionKey, Acks], into: ShareFetched
    ) -> None:
        rows = {
            (topic.topic_id, row.partition_index): row
            for topic in answer.responses
            for row in topic.partitions
        }
        nodes = [Node(each.node_id, each.host, each.port) for each in answer.node_endpoints]
        for key, said in acks.items():
            row = rows.get(key)
            code, text = (
                (row.acknowledge_error_code, row.acknowledge_error_message) if row else (0, "")
            )
            into.acknowledged.append(self._one(key, said, code, text))
        for key, row in rows.items():
            name = self._names.get(key)
            if name is None:
                continue
            if row.error_code:
                self._miss(name, row, nodes, into)
            elif row.acquired_records:
                self._read_partition(key, name, row, into)

    def _miss(
        self, name: TopicPartition, row: PartitionData, nodes: Iterable[Node], into: ShareFetched
    ) -> None:
        error = KafkaError(row.error_code, f"partition {name}", row.error_message)
        leader = row.current_leader
        if not error.retriable:
            into.errors.append(error)
        elif not self._cluster.learn_leader(name, leader.leader_id, leader.leader_epoch, nodes):
            self._cluster.forget(name.topic)
            into.is_fine = False

    def _read_partition(
        self, key: SharePartitionKey, name: TopicPartition, row: PartitionData, into: ShareFetched
    ) -> None:
        held = self._held.setdefault(key, HeldRecords())
        counts = dict(_acquired(row.acquired_records))
        found: list[Record] = []
        try:
            data = memoryview(row.records)
            batches = list(visible(read_batches(data, check_crc=False)))
            chunk = Chunk(name, 0, data, batches, 0, check_crcs=self._settings.check_crcs)
            chunk.read(found, 1 << 62, min(counts))
        except ProtocolError as error:
            # What cannot be read is no gap: somebody else may be able to.
            into.errors.append(
                KafkaError(ErrorCode.CORRUPT_MESSAGE, f"partition {name}", str(error))
            )
            for offset in counts:
                held.hand_out(offset)
                held.say(offset, AcknowledgeType.RELEASE)
            return
        for record in found:
            count = counts.pop(record.offset, None)
            if count is not None:
                record.delivery_count = count
                into.records.append(record)
        held.skip(counts)


def may_pass(error: ClientError) -> bool:
    """Whether to try again without a word to the user."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, UnreachableError | RequestTimeoutError)


def _acquired(rows: Iterable[AcquiredRecords]) -> Iterable[tuple[int, int]]:
    for row in rows:
        for offset in range(row.first_offset, row.last_offset + 1):
            yield offset, row.delivery_count
