"""A member's heartbeat: it joins, tells what it reads and has, and hears what it gets."""

from dataclasses import replace
from typing import Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.commands import ConsumerHeartbeat
from moldau.groups.consumer.departure import decide_leave
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
    without_epochs,
)
from moldau.groups.consumer.reconciliation import advance, expect_revocation
from moldau.groups.consumer.regexes import expect_regexes
from moldau.groups.consumer.sessions import begin_group
from moldau.groups.consumer.targets import assignor_names
from moldau.groups.consumer.timers import (
    MemberSessionTimer,
    heartbeat_interval_ms,
    session_timeout_ms,
)
from moldau.groups.group import GroupType
from moldau.groups.migration.upgrade import upgrade
from moldau.groups.modern.partitions import Partitions, partitions_of
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.uuid_text import uuid_to_text
from moldau.metadata.settings.broker import BrokerSettings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

UUID_BYTES: Final = 16

OWN_IDS_SINCE: Final = 1
"""From this version on members choose their ids."""


def decide_heartbeat(
    shelf: GroupShelf,
    asked: ConsumerHeartbeat,
    _ticket: Ticket[ConsumerGroupHeartbeatResponse],
    now: Instant,
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Decide a request that was checked; `Refusal` says what the member has to do."""
    request = asked.request
    if request.member_epoch < JOINING:
        return decide_leave(shelf, request, now)
    group_id, context = request.group_id, shelf.context
    if request.member_epoch == JOINING:
        draft = _draft_to_join(shelf, group_id)
    else:
        draft = ConsumerGroupDraft(shelf.get_consumer_group(group_id))
    check_room(draft.group, request.member_id, context.settings.group_consumer_max_size)
    member_id = request.member_id or uuid_to_text(context.entropy(UUID_BYTES))
    owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
    member = _find_member(draft, request, member_id, owned)
    told = _as_told(member, asked)
    further = advance(shelf, draft, told, owned, now)
    at = now.monotonic + session_timeout_ms(context, group_id) / 1000
    effects = [*draft.effects]
    if isinstance(shelf.groups.get(group_id), ClassicGroup):
        # It becomes this one: its members have their sessions here from now on.
        effects += begin_group(shelf, draft.group, now)
    effects += [
        *shelf.consumers.deadlines.set(MemberSessionTimer(group_id, member_id), at),
        *expect_revocation(shelf, group_id, told, further, now),
        *expect_regexes(shelf, draft.group, now),
    ]
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=further.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(context, group_id),
    )
    if _is_full(request) or further.assigned != member.assigned:
        response.assignment = _assignment(without_epochs(further.assigned))
    # Whatever part of the records is in the log, the next heartbeat goes on from there.
    return Decision(draft.records, response, effects, is_atomic=False)


def _draft_to_join(shelf: GroupShelf, group_id: str) -> ConsumerGroupDraft:
    """Return a group that a member joins: one that is there, or a new one."""
    group = shelf.groups.get(group_id)
    if group is None:
        return ConsumerGroupDraft(ConsumerGroup(group_id))
    if group.type is GroupType.CLASSIC and group.is_empty:
        return ConsumerGroupDraft(ConsumerGroup(group_id), before=group.tombstones())
    if isinstance(group, ClassicGroup):
        return upgrade(shelf, group)
    return ConsumerGroupDraft(shelf.get_consumer_group(group_id))


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse more members than there may be."""
    if len(group.members) >= size_max and member_id not in group.members:
        raise Refusal(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def _find_member(
    draft: ConsumerGroupDraft,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Partitions | None,
) -> ConsumerMember:
    """Return the member that asks: a known one, a new one, or one in a static member's place."""
    group, instance_id = draft.group, request.instance_id
    if request.member_epoch == JOINING:
        static = group.find_static(instance_id)
        if static is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if static.classic is None and static.epoch != LEAVING_FOR_A_WHILE:
            raise Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group"
                f" because the instance id is owned by {static.member_id} member.",
            )
        return draft.replace_static(static, member_id)
    if instance_id is None:
        member = group.get_member(member_id)
    else:
        member = group.get_static(instance_id, member_id)
    _check_epoch(member, request.member_epoch, owned)
    return member


def _check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch and owned is not None and _is_part(owned, member):
        # The answer with its new epoch was lost.
        return
    compared = "greater" if epoch > member.epoch else "smaller"
    raise Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by"
        f" the group coordinator ({member.epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )


def _is_part(owned: Partitions, member: ConsumerMember) -> bool:
    return all(
        partitions <= member.assigned.get(topic_id, {}).keys()
        for topic_id, partitions in owned.items()
    )


def _as_told(member: ConsumerMember, asked: ConsumerHeartbeat) -> ConsumerMember:
    """Return the member with what it tells; what it leaves out stays as it was."""
    request = asked.request
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    assignor, timeout_ms = request.server_assignor, request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        server_assignor=member.server_assignor if assignor is None else assignor,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=asked.client_id,
        client_host=asked.client_host,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member tells all, as it does when it joins or has missed an answer."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != -1
        and (names is not None or regex is not None)
        and request.topic_partitions is not None
    )


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in sorted(partitions.items())
        ]
    )


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
