"""What a heartbeat has to say, whatever the group."""

from typing import Final

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.member import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from moldau.groups.consumer.targets import assignor_names
from moldau.metadata.settings.broker import BrokerSettings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

OWN_IDS_SINCE: Final = 1
"""From this version on members choose their ids."""


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: BrokerSettings
) -> None:
    """Refuse what no member of any group would say, in Kafka's words."""
    epoch = request.member_epoch
    if version >= OWN_IDS_SINCE or epoch > JOINING or epoch == LEAVING:
        _check_text(request.member_id, "MemberId can't be empty.")
    _check_text(request.group_id, "GroupId can't be empty.")
    _check_text(request.instance_id, "InstanceId can't be empty.")
    _check_text(request.rack_id, "RackId can't be empty.")
    if epoch == JOINING:
        _check_joining(request)
    elif epoch == LEAVING_FOR_A_WHILE:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_A_WHILE:
        raise _invalid("MemberEpoch is invalid.")
    names = assignor_names(settings)
    if request.server_assignor is not None and request.server_assignor not in names:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported."
            f" Supported assignors: {', '.join(names)}.",
        )


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )


def _check_text(text: str | None, words: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(words)


def _invalid(words: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, words)
