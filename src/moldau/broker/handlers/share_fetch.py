"""ShareFetch v1-v2. v2 acquire modes, and renewed locks (KIP-1222).

Acknowledgements that come along are done while the fetch waits; one answer tells of both.
"""

from collections.abc import Callable, Sequence
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.leaders import current_leader
from moldau.broker.shares.acknowledgements import AcknowledgementOutcomes, acknowledge
from moldau.broker.shares.fetch import ForMember, ShareFetch, Terms
from moldau.broker.shares.requests import check_member, refuse_renewal
from moldau.broker.shares.sessions import (
    FIRST_EPOCH,
    LAST_EPOCH,
    SessionKey,
    SharedPartition,
    ShareSession,
)
from moldau.broker.shares.share_settings import share_settings
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from moldau.sharing.limits import AcquisitionWish

RENEWAL_SINCE: Final = 2
RECORD_LIMIT: Final = 1
"""The acquire mode in which no more records are acquired than were asked for."""


def handle_share_fetch(
    broker: Broker, call: Call, request: ShareFetchRequest
) -> ShareFetchResponse | None:
    """Acquire records for a member of a share group."""
    said: dict[SharedPartition, Sequence[AcknowledgementBatch]] = {
        (topic.topic_id, each.partition_index): each.acknowledgement_batches
        for topic in request.topics
        for each in topic.partitions
        if each.acknowledgement_batches
    }
    try:
        key = check_member(broker, request.group_id, request.member_id)
        if call.version >= RENEWAL_SINCE and request.is_renew_ack:
            refuse_renewal(request)
        wanted = _select(broker, call, key, request, has_said=bool(said))
    except Refusal as refusal:
        return ShareFetchResponse(error_code=refusal.code, error_message=refusal.message)
    _Answering(broker, call, request, key).begin(wanted, said)
    return None


def _select(
    broker: Broker, call: Call, key: SessionKey, request: ShareFetchRequest, *, has_said: bool
) -> Sequence[SharedPartition]:
    """Return the partitions of the member's session, in turn."""
    sessions = broker.shares.sessions
    epoch = request.share_session_epoch
    if epoch == FIRST_EPOCH:
        if has_said:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, "There is nothing yet to be acknowledged in a session."
            )
        broker.shares.end(key)
        sessions_max = broker.settings.group_share_max_share_sessions
        session = sessions.begin(key, call.peer, _named(broker, request), sessions_max)
        broker.shares.watch(call.peer)
        return session.in_turn(epoch)
    session = sessions.get(key, epoch)
    if epoch == LAST_EPOCH:
        return ()
    if request.forgotten_topics_data or not _knows_all(session, request):
        forgotten = [
            (topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        sessions.update(session, _named(broker, request), forgotten)
    session.advance()
    return session.in_turn(epoch)


def _named(broker: Broker, request: ShareFetchRequest) -> list[SharedPartition]:
    """Return the partitions that a request names.

    As in Kafka, a topic that is not known yet is passed over: its members name it again.
    """
    return [
        (topic.topic_id, each.partition_index)
        for topic in request.topics
        if broker.image.topics.find_by_id(topic.topic_id) is not None
        for each in topic.partitions
    ]


def _knows_all(session: ShareSession, request: ShareFetchRequest) -> bool:
    """Whether a request names nothing new: acknowledgements name what is in the session."""
    for topic in request.topics:
        for each in topic.partitions:
            if (topic.topic_id, each.partition_index) not in session.partitions:
                return False
    return True


class _Answering:
    """Waits for acknowledgements and fetch, and answers when both are done."""

    def __init__(
        self, broker: Broker, call: Call, request: ShareFetchRequest, key: SessionKey
    ) -> None:
        self._broker = broker
        self._call = call
        self._request = request
        self._key = key
        self._fetch: ShareFetch | None = None
        self._outcomes: AcknowledgementOutcomes | None = None
        self._fetched: list[ForMember] | None = None
        self._release: Callable[[], None] | None = None
        self._endpoints: dict[int, NodeEndpoint] = {}

    def begin(
        self,
        wanted: Sequence[SharedPartition],
        said: dict[SharedPartition, Sequence[AcknowledgementBatch]],
    ) -> None:
        """Begin both."""
        request, broker = self._request, self._broker
        is_renewal = self._call.version >= RENEWAL_SINCE and request.is_renew_ack
        acknowledge(
            broker,
            self._key.group_id,
            self._key.member_id,
            said,
            now=self._call.received.monotonic,
            may_renew=is_renewal,
            then=self._acknowledged,
        )
        if not wanted or is_renewal or request.max_records <= 0:
            self._got([], None)
            return
        bytes_max = min(request.max_bytes, broker.settings.fetch_max_bytes)
        terms = Terms(
            self._call.received.monotonic + request.max_wait_ms / 1000,
            min(request.min_bytes, bytes_max),
            bytes_max,
            AcquisitionWish(
                request.max_records,
                request.batch_size,
                is_strict=request.share_acquire_mode == RECORD_LIMIT,
            ),
        )
        self._fetch = ShareFetch(broker, self._call, *self._key, wanted, terms, self._got)
        self._fetch.start()

    def _acknowledged(self, outcomes: AcknowledgementOutcomes) -> None:
        self._outcomes = outcomes
        if self._request.share_session_epoch == LAST_EPOCH:
            self._broker.shares.end(self._key)
        if self._fetched is not None:
            self._call.attempt(self._answer)

    def _got(self, fetched: list[ForMember], release: Callable[[], None] | None) -> None:
        self._fetched, self._release = fetched, release
        if self._outcomes is not None:
            self._answer()

    def _answer(self) -> None:
        assert self._fetched is not None, "there is an answer when all is done"
        assert self._outcomes is not None, "there is an answer when all is done"
        rows = {}
        for each in self._fetched:
            rows[each.partition] = self._row(each)
        for partition, refusal in self._outcomes.items():
            row = rows.setdefault(partition, PartitionData(partition_index=partition[1]))
            if refusal is not None:
                row.acknowledge_error_code = refusal.code
                row.acknowledge_error_message = refusal.message
                self._name_leader(row, partition, refusal.code)
        if self._request.share_session_epoch == FIRST_EPOCH:
            session = self._broker.shares.sessions.find(self._key)
            passed_over = set() if self._fetch is None else self._fetch.passed_over
            for partition in () if session is None else session.partitions:
                if partition in passed_over:
                    continue
                rows.setdefault(partition, PartitionData(partition_index=partition[1]))
        settings = share_settings(self._broker, self._key.group_id)
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=settings.share_record_lock_duration_ms,
            responses=_by_topic(rows),
            node_endpoints=list(self._endpoints.values()),
        )
        self._call.answer(response, self._release)

    def _row(self, fetched: ForMember) -> PartitionData:
        row = PartitionData(
            partition_index=fetched.partition[1],
            records=fetched.records,
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in fetched.acquired
            ],
        )
        if fetched.error is not None:
            row.error_code = fetched.error.code
            row.error_message = fetched.error.message
            self._name_leader(row, fetched.partition, fetched.error.code)
        return row

    def _name_leader(self, row: PartitionData, partition: SharedPartition, code: ErrorCode) -> None:
        """Tell a client that is wrong here who leads a partition (KIP-951)."""
        topic = self._broker.image.topics.find_by_id(partition[0])
        if topic is None or code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return
        leader = current_leader(self._broker, self._call.peer, topic.name, partition[1])
        row.current_leader = LeaderIdAndEpoch(
            leader_id=leader.node_id, leader_epoch=leader.leader_epoch
        )
        if leader.endpoint is not None:
            host, port = leader.endpoint
            self._endpoints[leader.node_id] = NodeEndpoint(
                node_id=leader.node_id, host=host, port=port
            )


def _by_topic(rows: dict[SharedPartition, PartitionData]) -> list[ShareFetchableTopicResponse]:
    by_topic: dict[bytes, list[PartitionData]] = {}
    for (topic_id, _), row in rows.items():
        by_topic.setdefault(topic_id, []).append(row)
    return [
        ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]
