"""The admin client's part for transactions: who has one open, and how it is ended from outside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from moldau.client.admin_partitions import PartitionAdmin
from moldau.client.by_name import ask_each
from moldau.client.clock import loop_clock
from moldau.client.connection import Connection
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.descriptions import ActiveProducer
from moldau.client.errors import ClientError, KafkaError, check
from moldau.client.leaders import LeaderAnswers, ask_leaders, by_topic
from moldau.client.outbox_events import OutboxProducer
from moldau.client.transaction_requests import END_BEFORE_V2, FEATURE, IMPLICIT_SINCE
from moldau.client.transactional import PreparedTransaction
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

DURATIONS_SINCE: Final = 1
PATTERNS_SINCE: Final = 2
TIMEOUT_MS_MAX: Final = 900_000
"""The longest a transaction may be open where brokers keep their default."""


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id that a coordinator knows."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int
    """The broker that knows it."""


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """What a coordinator knows of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    """When the open transaction began; None without one."""
    partitions: frozenset[TopicPartition]
    """Those that the open transaction has written to."""
    coordinator: int


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction that holds a partition's readers up, and that no coordinator will end."""

    partition: TopicPartition
    producer: ActiveProducer


class TransactionAdmin(PartitionAdmin):
    """Transactions, and the producers behind them."""

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        id_pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """Ask every broker for the transactional ids that it coordinates; filters go together."""
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=-1 if running_longer_than_ms is None else running_longer_than_ms,
            transactional_id_pattern=id_pattern,
        )
        wanted = 0 if running_longer_than_ms is None else DURATIONS_SINCE
        least = wanted if id_pattern is None else PATTERNS_SINCE

        async def ask(connection: Connection) -> ListTransactionsResponse:
            version = connection.version_of(ListTransactionsRequest)
            if version < least:
                what = f"ListTransactions at {connection.address}"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what, "it has no such filter")
            answer = await connection.call(request, ListTransactionsResponse, version)
            check(answer.error_code, "list transactions")
            if answer.unknown_state_filters:
                unknown = ", ".join(answer.unknown_state_filters)
                raise KafkaError(ErrorCode.INVALID_REQUEST, "list transactions", f"state {unknown}")
            return answer

        await self._cluster.refresh([])
        listed = []
        for node_id in sorted(self._cluster.nodes):

            async def attempt(node_id: int = node_id) -> ListTransactionsResponse:
                return await ask(await self._cluster.connect(node_id))

            answer = await self._cluster.retry(attempt, f"transactions of broker {node_id}")
            listed += [
                ListedTransaction(
                    each.transactional_id, each.producer_id, each.transaction_state, node_id
                )
                for each in answer.transaction_states
            ]
        return sorted(listed, key=lambda each: each.transactional_id)

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | ClientError]:
        """Return what the coordinators know of each id, or an error in its place."""
        lookup = CoordinatorLookup(self._cluster, CoordinatorType.TRANSACTION)

        async def describe(transactional_id: str) -> TransactionDescription:
            async def ask(connection: Connection) -> DescribeTransactionsResponse:
                request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
                answer = await connection.call(request, DescribeTransactionsResponse)
                check(
                    answer.transaction_states[0].error_code, f"transactional id {transactional_id}"
                )
                return answer

            answer = await lookup.call(transactional_id, ask, "describe transactions")
            [row] = answer.transaction_states
            return TransactionDescription(
                row.transaction_state,
                row.producer_id,
                row.producer_epoch,
                row.transaction_timeout_ms,
                row.transaction_start_time_ms if row.transaction_start_time_ms >= 0 else None,
                frozenset(
                    TopicPartition(topic.topic, index)
                    for topic in row.topics
                    for index in topic.partitions
                ),
                await lookup.find(transactional_id),
            )

        return await ask_each(transactional_ids, describe)

    async def fence_producers(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, OutboxProducer | ClientError]:
        """Stop the producers that have these ids, and abort what they have open.

        Returns the producer id and the epoch by which they are fenced, or an error in their place.
        """
        lookup = CoordinatorLookup(self._cluster, CoordinatorType.TRANSACTION)
        timeout_ms = self._cluster.settings.request_timeout_ms

        async def fence(transactional_id: str) -> OutboxProducer:
            async def ask(connection: Connection) -> OutboxProducer:
                request = InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
                )
                answer = await connection.call(request, InitProducerIdResponse)
                check(answer.error_code, f"transactional id {transactional_id}")
                return OutboxProducer(answer.producer_id, answer.producer_epoch)

            return await lookup.call(transactional_id, ask, "fence producers")

        return await ask_each(transactional_ids, fence)

    async def end_transactions(
        self, transactions: Mapping[str, PreparedTransaction], *, is_commit: bool
    ) -> dict[str, ClientError | None]:
        """End transactions, by their ids, that producers have handed over or prepared.

        It may be asked for again: what has ended in the same way is no error. INVALID_TXN_STATE
        says that one has ended in the other way; PRODUCER_FENCED or INVALID_PRODUCER_EPOCH that
        the id has gone on since, as it does when a transaction times out.
        """
        lookup = CoordinatorLookup(self._cluster, CoordinatorType.TRANSACTION)

        async def end(transactional_id: str) -> None:
            producer_id, epoch = transactions[transactional_id]
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=is_commit,
            )

            async def ask(connection: Connection) -> None:
                version = connection.version_of(EndTxnRequest)
                if connection.features.get(FEATURE, 0) < IMPLICIT_SINCE:
                    version = min(version, END_BEFORE_V2)
                answer = await connection.call(request, EndTxnResponse, version)
                check(answer.error_code, f"transactional id {transactional_id}")

            await lookup.call(transactional_id, ask, "end transactions")

        return await ask_each(transactions, end)

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """Write an abort marker into a partition, where no coordinator does.

        `describe_producers` has the numbers; `find_hanging_transactions` says where it is needed.
        """

        async def ask(
            connection: Connection, group: Mapping[TopicPartition, tuple[None, int]]
        ) -> LeaderAnswers[None]:
            marker = WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                coordinator_epoch=coordinator_epoch,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=list(indexes))
                    for name, indexes in by_topic(group).items()
                ],
            )
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = await connection.call(request, WriteTxnMarkersResponse)
            found: LeaderAnswers[None] = {}
            for topic in answer.markers[0].topics:
                for row in topic.partitions:
                    key = TopicPartition(topic.name, row.partition_index)
                    what = f"abort of producer {producer_id} in {key}"
                    found[key] = KafkaError(row.error_code, what) if row.error_code else None
            return found

        key = TopicPartition(*partition)
        answer = (await ask_leaders(self._cluster, {key: None}, ask))[key]
        if answer is not None:
            raise answer

    async def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition],
        *,
        max_transaction_timeout_ms: int = TIMEOUT_MS_MAX,
    ) -> list[HangingTransaction]:
        """Return the open transactions of partitions that no coordinator knows of.

        Only those that have written nothing for longer than any transaction may last are looked
        at: what is younger may not have come to its coordinator yet.
        """
        latest_ms = loop_clock().wall_ms() - max_transaction_timeout_ms
        open_ones: list[HangingTransaction] = []
        for key, producers in (await self.describe_producers(partitions)).items():
            if isinstance(producers, KafkaError):
                raise producers
            open_ones += [
                HangingTransaction(key, each)
                for each in producers
                if each.transaction_start_offset >= 0 and each.last_timestamp_ms < latest_ms
            ]
        known = await self._known_transactions({each.producer.producer_id for each in open_ones})
        return [
            each
            for each in open_ones
            if each.partition not in known.get(each.producer.producer_id, ())
        ]

    async def _known_transactions(
        self, producer_ids: set[int]
    ) -> dict[int, frozenset[TopicPartition]]:
        """Return by producer ids the partitions that are in a transaction of a coordinator's."""
        if not producer_ids:
            return {}
        listed = await self.list_transactions(producer_ids=sorted(producer_ids))
        described = await self.describe_transactions(each.transactional_id for each in listed)
        known = {}
        for each in described.values():
            if isinstance(each, TransactionDescription):
                known[each.producer_id] = each.partitions
            elif not (
                isinstance(each, KafkaError) and each.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            ):
                raise each
        return known
