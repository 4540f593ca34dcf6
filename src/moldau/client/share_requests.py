"""ShareFetch and ShareAcknowledge, v1-v2: what a session says, as messages."""

from collections.abc import Mapping

from moldau.client.acknowledgements import Acks
from moldau.client.share_session import SharePartitionKey, ShareRequest
from moldau.client.share_settings import ACQUIRE_MODES, ShareSettings
from moldau.protocol.messages import share_acknowledge, share_fetch
from moldau.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from moldau.protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)


def fetch_request(
    settings: ShareSettings, member_id: str, session: ShareRequest
) -> ShareFetchRequest:
    """Return a request for records."""
    return ShareFetchRequest(
        group_id=settings.group_id,
        member_id=member_id,
        share_session_epoch=session.epoch,
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        max_records=settings.max_poll_records,
        batch_size=settings.max_poll_records,
        share_acquire_mode=ACQUIRE_MODES[settings.share_acquire_mode],
        topics=[
            FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition_index=index,
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=each.first,
                                last_offset=each.last,
                                acknowledge_types=each.types,
                            )
                            for each in (acks.batches if acks is not None else ())
                        ],
                    )
                    for index, acks in partitions.items()
                ],
            )
            for topic_id, partitions in session.topics.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in session.forgotten.items()
        ],
    )


def acknowledge_request(
    group_id: str,
    member_id: str,
    epoch: int,
    acks: Mapping[SharePartitionKey, Acks],
    *,
    has_renewals: bool,
) -> ShareAcknowledgeRequest:
    """Return a request that only tells what was done."""
    topics: dict[bytes, dict[int, Acks]] = {}
    for (topic_id, index), each in acks.items():
        topics.setdefault(topic_id, {})[index] = each
    return ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=has_renewals,
        topics=[
            AcknowledgeTopic(
                topic_id=topic_id,
                partitions=[
                    AcknowledgePartition(
                        partition_index=index,
                        acknowledgement_batches=[
                            share_acknowledge.AcknowledgementBatch(
                                first_offset=each.first,
                                last_offset=each.last,
                                acknowledge_types=each.types,
                            )
                            for each in said.batches
                        ],
                    )
                    for index, said in partitions.items()
                ],
            )
            for topic_id, partitions in topics.items()
        ],
    )
