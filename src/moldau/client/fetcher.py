"""The fetcher: asks the leaders for records, one answer ahead of what is handed out.

From each broker one answer may wait to be handed out while the next is on its way or waits, too;
then the broker is not asked until one is through. So memory is bounded by twice `fetch.max.bytes`
for each broker, and a broker is always asked about all partitions that it leads: none is left
out because another is full, and waits for a long poll to end.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from moldau._native.records import read_batches
from moldau.client.chunk import Chunk
from moldau.client.clock import loop_clock
from moldau.client.cluster import NO_LEADER, Backoff, Cluster, Node
from moldau.client.committed import committed, visible
from moldau.client.connection import Connection
from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.errors import ClientError, KafkaError
from moldau.client.fetch_queue import FetchedAnswer, FetchQueue, Trouble
from moldau.client.fetch_session import FetchSessionHandler, PartitionFetch
from moldau.client.offset_lookup import ISOLATION_LEVELS
from moldau.client.positions import PartitionState, Positions
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from moldau.protocol.schema import ZERO_UUID

ANSWERS_AHEAD: Final = 2
OUTDATED_SECONDS: Final = 0.05
"""How long a request that asks for the wrong things may wait; then its connection is given up."""

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""The broker knows nothing of the session any more: it is begun anew, and nothing is lost."""

FINAL: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE})
"""The errors that the user is told; others pass, or end in metadata that say so."""


class Fetcher:
    """Fetches for all assigned partitions as long as somebody takes what comes."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        positions: Positions,
        queue: FetchQueue,
        on_news: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._positions = positions
        self._on_news = on_news
        self._queue = queue
        self._monotonic = loop_clock().monotonic
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._asked: dict[int, dict[TopicPartition, tuple[PartitionFetch, int]]] = {}
        self._connections: dict[int, Connection] = {}
        self._backoffs: dict[int, Backoff] = {}
        self._outdated: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Give up what is on its way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Asking.

    def pump(self) -> None:
        """Ask every broker that may be asked."""
        monotonic = self._monotonic()
        nodes: dict[int, dict[TopicPartition, tuple[PartitionFetch, int]]] = {}
        for state in self._positions:
            if state.position is None or state.is_paused or state.is_fetched:
                continue
            if state.not_before > monotonic:
                continue
            topic = self._cluster.find_topic(state.key.topic)
            if topic is None or state.key.partition >= len(topic.partitions):
                continue
            state.topic_id = state.topic_id or topic.topic_id
            partition = topic.partitions[state.key.partition]
            node_id = partition.leader
            if state.replica is not None and state.replica_until > monotonic:
                node_id = state.replica
            if state.topic_id != topic.topic_id:
                continue
            if node_id == NO_LEADER:
                self._find_leader(state)
                continue
            wanted = PartitionFetch(
                topic.topic_id,
                state.fetch_offset,
                partition.leader_epoch,
                state.last_epoch,
                self._settings.max_partition_fetch_bytes,
            )
            nodes.setdefault(node_id, {})[state.key] = wanted, state.generation
        for node_id, asked in nodes.items():
            if node_id in self._tasks:
                self._watch(node_id, asked)
            elif self._queue.answers_from(node_id) < ANSWERS_AHEAD:
                task = asyncio.get_running_loop().create_task(self._fetch(node_id, asked))
                self._tasks[node_id] = task
                self._asked[node_id] = asked

    def _watch(
        self, node_id: int, wanted: dict[TopicPartition, tuple[PartitionFetch, int]]
    ) -> None:
        """Give up a long poll that does not ask for what is wanted by now, as after a seek."""
        task, asked = self._tasks[node_id], self._asked[node_id]
        if task in self._outdated or all(
            key in asked and asked[key][1] == generation
            for key, (_, generation) in wanted.items()
            if self._positions.get(key).not_before == 0
        ):
            return
        self._outdated.add(task)

        def give_up() -> None:
            connection = self._connections.get(node_id)
            if self._tasks.get(node_id) is task and connection is not None:
                connection.close()

        asyncio.get_running_loop().call_later(OUTDATED_SECONDS, give_up)

    async def _fetch(
        self, node_id: int, asked: dict[TopicPartition, tuple[PartitionFetch, int]]
    ) -> None:
        try:
            connection = await self._cluster.connect(node_id, "fetch")
            self._connections[node_id] = connection
            session = self._sessions.setdefault(node_id, FetchSessionHandler())
            answer = await self._ask(connection, session, {key: asked[key][0] for key in asked})
            if answer is not None:
                self._take(FetchedAnswer(node_id, connection), answer, asked)
            self._backoffs.pop(node_id, None)
        except ClientError:
            # Perhaps others lead its partitions by now; if not, it is asked again after a while.
            self._sessions.pop(node_id, None)
            if self._tasks[node_id] in self._outdated:
                return
            for key in asked:
                self._cluster.forget(key.topic)
            backoff = self._backoffs.setdefault(node_id, Backoff(self._settings))
            await asyncio.sleep(backoff.next_seconds())
        finally:
            self._outdated.discard(self._tasks.pop(node_id))
            self._on_news()

    async def _ask(
        self,
        connection: Connection,
        session: FetchSessionHandler,
        wanted: dict[TopicPartition, PartitionFetch],
    ) -> FetchResponse | None:
        settings = self._settings
        said = session.next_request(wanted)
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=ISOLATION_LEVELS[settings.isolation_level],
            session_id=said.session_id,
            session_epoch=said.epoch,
            topics=said.topics,
            forgotten_topics_data=said.forgotten,
            rack_id=settings.client_rack,
        )
        try:
            answer = await connection.call(
                request,
                FetchResponse,
                timeout_ms=settings.request_timeout_ms + settings.fetch_max_wait_ms,
            )
        except BaseException:
            session.reset()
            raise
        if answer.error_code:
            session.reset()
            if answer.error_code in SESSION_ERRORS:
                return None
            raise KafkaError(answer.error_code, f"fetch from {connection.address}")
        session.answered(answer.session_id)
        return answer

    # Taking what comes.

    def _take(
        self,
        answer: FetchedAnswer,
        response: FetchResponse,
        asked: dict[TopicPartition, tuple[PartitionFetch, int]],
    ) -> None:
        names = {wanted.topic_id: key.topic for key, (wanted, _) in asked.items()}
        nodes = [
            Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints
        ]
        parts: list[Chunk | Trouble] = []
        for topic in response.responses:
            name = topic.topic if topic.topic_id == ZERO_UUID else names.get(topic.topic_id, "")
            for row in topic.partitions:
                key = TopicPartition(name, row.partition_index)
                if key not in asked:
                    continue
                wanted, generation = asked[key]
                state = self._positions.find_current(key, generation)
                if state is None:
                    continue
                part = self._part(state, wanted, row, nodes)
                if part is not None:
                    parts.append(part)
        self._queue.add(answer, parts)

    def _part(
        self, state: PartitionState, wanted: PartitionFetch, row: PartitionData, nodes: list[Node]
    ) -> Chunk | Trouble | None:
        """Return what an answer's row is to those who read, None if it is nothing to them."""
        if row.error_code:
            return self._failed(state, wanted, row, nodes)
        if row.diverging_epoch.end_offset >= 0:
            return Trouble(
                state.key,
                state.generation,
                wanted.offset,
                ErrorCode.OFFSET_OUT_OF_RANGE,
                "the log was cut by an election, and has other records there now",
                row.diverging_epoch.end_offset,
            )
        state.not_before = 0.0
        if row.preferred_read_replica >= 0:
            state.replica = row.preferred_read_replica
            state.replica_until = self._monotonic() + self._settings.metadata_max_age_ms / 1000
        return self._chunk(state, wanted, row) if row.records else None

    def _chunk(
        self, state: PartitionState, wanted: PartitionFetch, row: PartitionData
    ) -> Chunk | Trouble | None:
        data = memoryview(row.records or b"")
        try:
            # Checksums are looked at when a batch is handed out.
            batches = read_batches(data, check_crc=False)
            if self._settings.isolation_level == "read_committed":
                shown = list(committed(data, batches, row.aborted_transactions or ()))
            else:
                shown = list(visible(batches))
        except ProtocolError as error:
            return Trouble(
                state.key, state.generation, wanted.offset, ErrorCode.CORRUPT_MESSAGE, str(error)
            )
        if not batches:
            return None  # a part of one: it comes whole when its partition is the first
        last = batches[-1]
        following = last.last_offset + 1
        if not self._positions.fetched(state, wanted.offset, following, last.leader_epoch):
            return None
        return Chunk(
            state.key,
            state.generation,
            data,
            shown,
            following,
            check_crcs=self._settings.check_crcs,
        )

    def _failed(
        self, state: PartitionState, wanted: PartitionFetch, row: PartitionData, nodes: list[Node]
    ) -> Trouble | None:
        error = KafkaError(row.error_code, f"partition {state.key}")
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and state.replica is not None:
            # A follower may be behind: its leader knows better.
            state.replica = None
            return None
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE or error.code in FINAL:
            return Trouble(state.key, state.generation, wanted.offset, error.code)
        state.replica = None
        leader = row.current_leader
        if not self._cluster.learn_leader(state.key, leader.leader_id, leader.leader_epoch, nodes):
            if error.code is not ErrorCode.OFFSET_NOT_AVAILABLE:
                self._cluster.forget(state.key.topic)
            self._wait(state)
        return None

    def _find_leader(self, state: PartitionState) -> None:
        """Ask for the metadata of a partition without a leader again, until it has one."""
        self._cluster.forget(state.key.topic)
        self._wait(state)

    def _wait(self, state: PartitionState) -> None:
        """Ask for a partition no more until the backoff is over."""
        wait = self._settings.retry_backoff_ms / 1000
        state.not_before = self._monotonic() + wait
        asyncio.get_running_loop().call_later(wait, self._on_news)
