"""A producer's way to one broker: requests in their order, over a connection that may be lost."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from moldau.client.cluster import Cluster
from moldau.client.connection import Connection
from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.client.outbox_events import Answered, BatchOutcome, Lost, OutboxEvent, Request
from moldau.client.producer_settings import ProducerSettings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.schema import ZERO_UUID

TOPIC_IDS_SINCE = 13


class Lane:
    """Sends what it is given, in order; says of each request what became of it, in order.

    What is sent leaves with `release`: several requests cost not much more than one.
    """

    def __init__(
        self,
        node: int,
        cluster: Cluster,
        settings: ProducerSettings,
        tell: Callable[[OutboxEvent], None],
        run: Callable[..., object],
        encode: Callable[[Request], Sequence[bytes]],
        version_max: Callable[[], int],
    ) -> None:
        self._node = node
        self._cluster = cluster
        self._settings = settings
        self._tell = tell
        self._run = run
        self._encode = encode
        self._version_max = version_max
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._waiting: deque[Request] = deque()  # for a connection
        self._unanswered: deque[tuple[float, Request]] = deque()  # with their deadlines
        self._timer: asyncio.TimerHandle | None = None
        self._is_connecting = False

    def send(self, request: Request) -> None:
        """Send a request now, or when there is a connection."""
        if self._connection is not None and not self._connection.is_lost and not self._waiting:
            self._send(self._connection, request)
            return
        self._waiting.append(request)
        if not self._is_connecting:
            self._is_connecting = True
            self._run(self._connect())

    def release(self) -> None:
        """Let go what was sent since the last time."""
        if self._connection is not None:
            self._connection.release()

    def stop(self) -> None:
        """Look at the clock no more."""
        if self._timer is not None:
            self._timer.cancel()

    async def _connect(self) -> None:
        try:
            self._connection = await self._cluster.connect(self._node)
        except ClientError as error:
            self._is_connecting = False
            lost, self._waiting = self._waiting, deque()
            for request in lost:
                self._tell(Lost(request, error))
            return
        self._is_connecting = False
        while self._waiting:
            self._send(self._connection, self._waiting.popleft())
        self._connection.release()

    def _send(self, connection: Connection, request: Request) -> None:
        # A topic can be another one by the time of the answer: this request speaks of this one.
        ids = {
            shipment.batch.topic: topic.topic_id
            for shipment in request.shipments
            if (topic := self._cluster.find_topic(shipment.batch.topic)) is not None
        }
        try:
            version = min(connection.version_of(ProduceRequest), self._version_max())
            if any(ids.get(each.batch.topic, ZERO_UUID) == ZERO_UUID for each in request.shipments):
                version = min(version, TOPIC_IDS_SINCE - 1)
            message = self._message(request, ids)
            if self._settings.required_acks == 0:
                connection.send_unanswered(message, version)
                outcomes = [BatchOutcome(ErrorCode.NONE)] * len(request.shipments)
                self._tell(Answered(request, outcomes))
                return
            answer = connection.send(message, ProduceResponse, version, is_held=True)
        except ClientError as error:
            self._tell(Lost(request, error))
            return
        deadline = self._loop.time() + self._settings.request_timeout_ms / 1000
        self._unanswered.append((deadline, request))
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._look_at_clock)
        answer.add_done_callback(lambda done: self._take(request, ids, done))

    def _message(self, request: Request, ids: dict[str, bytes]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for shipment, data in zip(request.shipments, self._encode(request), strict=True):
            rows = topics.setdefault(shipment.batch.topic, [])
            rows.append(PartitionProduceData(index=shipment.batch.partition, records=data))
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.required_acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, topic_id=ids.get(name, ZERO_UUID), partition_data=rows)
                for name, rows in topics.items()
            ],
        )

    def _take(
        self,
        request: Request,
        ids: dict[str, bytes],
        done: "asyncio.Future[ProduceResponse]",
    ) -> None:
        # Answers come in the order of the requests; a lost connection loses all of them in order.
        assert self._unanswered[0][1] is request
        self._unanswered.popleft()
        error = done.exception()
        if error is not None:
            assert isinstance(error, Exception)
            self._tell(Lost(request, error))
            return
        answer = done.result()
        outcomes = {
            (topic.name or topic.topic_id, row.index): BatchOutcome(
                row.error_code, row.base_offset, row.log_append_time_ms, row.error_message
            )
            for topic in answer.responses
            for row in topic.partition_responses
        }
        missing = BatchOutcome(ErrorCode.UNKNOWN_SERVER_ERROR, message="the answer leaves it out")
        found = []
        for each in request.shipments:
            topic, index = each.batch.topic, each.batch.partition
            outcome = outcomes.get((topic, index))
            found.append(outcome or outcomes.get((ids.get(topic, b""), index), missing))
        self._tell(Answered(request, found, answer.throttle_time_ms))

    def _look_at_clock(self) -> None:
        self._timer = None
        if not self._unanswered:
            return
        deadline = self._unanswered[0][0]
        if deadline <= self._loop.time() and self._connection is not None:
            self._connection.fail(
                RequestTimeoutError(
                    f"{self._connection.address} did not answer Produce within "
                    f"request.timeout.ms={self._settings.request_timeout_ms}"
                )
            )
        else:
            self._timer = self._loop.call_at(deadline, self._look_at_clock)
