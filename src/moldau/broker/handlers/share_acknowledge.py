"""ShareAcknowledge v1-v2. v2 renewed locks (KIP-1222)."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.leaders import current_leader
from moldau.broker.shares.acknowledgements import AcknowledgementOutcomes, acknowledge
from moldau.broker.shares.requests import check_member
from moldau.broker.shares.sessions import FIRST_EPOCH, LAST_EPOCH, SessionKey
from moldau.broker.shares.share_settings import share_settings
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

RENEWAL_SINCE: Final = 2


def handle_share_acknowledge(
    broker: Broker, call: Call, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | None:
    """Take what a member of a share group says of its records."""
    epoch = request.share_session_epoch
    try:
        key = check_member(broker, request.group_id, request.member_id)
        if epoch == FIRST_EPOCH:
            raise Refusal(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, "A share session begins with a fetch."
            )
        session = broker.shares.sessions.get(key, epoch)
    except Refusal as refusal:
        return ShareAcknowledgeResponse(error_code=refusal.code, error_message=refusal.message)
    if epoch != LAST_EPOCH:
        session.advance()
    said = {
        (topic.topic_id, each.partition_index): each.acknowledgement_batches
        for topic in request.topics
        for each in topic.partitions
        if each.acknowledgement_batches
    }

    def acknowledged(outcomes: AcknowledgementOutcomes) -> None:
        if epoch == LAST_EPOCH:
            broker.shares.end(key)
        call.attempt(lambda: call.answer(_response(broker, call, key, outcomes)))

    acknowledge(
        broker,
        *key,
        said,
        now=call.received.monotonic,
        may_renew=call.version >= RENEWAL_SINCE and request.is_renew_ack,
        then=acknowledged,
    )
    return None


def _response(
    broker: Broker, call: Call, key: SessionKey, outcomes: AcknowledgementOutcomes
) -> ShareAcknowledgeResponse:
    by_topic: dict[bytes, list[PartitionData]] = {}
    endpoints: dict[int, NodeEndpoint] = {}
    for (topic_id, index), refusal in outcomes.items():
        row = PartitionData(partition_index=index)
        by_topic.setdefault(topic_id, []).append(row)
        if refusal is None:
            continue
        row.error_code, row.error_message = refusal.code, refusal.message
        topic = broker.image.topics.find_by_id(topic_id)
        if topic is not None and refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = current_leader(broker, call.peer, topic.name, index)
            row.current_leader = LeaderIdAndEpoch(
                leader_id=leader.node_id, leader_epoch=leader.leader_epoch
            )
            if leader.endpoint is not None:
                host, port = leader.endpoint
                endpoints[leader.node_id] = NodeEndpoint(
                    node_id=leader.node_id, host=host, port=port
                )
    settings = share_settings(broker, key.group_id)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=settings.share_record_lock_duration_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=rows)
            for topic_id, rows in by_topic.items()
        ],
        node_endpoints=list(endpoints.values()),
    )
