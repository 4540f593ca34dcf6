"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: of a classic group, or of one that was classic.

A consumer group may have members that speak the classic protocol.
"""

from dataclasses import replace

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision, Effect
from moldau.coordination.refusal import Refusal
from moldau.groups.classic import heartbeat, join, leave, sync
from moldau.groups.classic.decision_builder import refused_join
from moldau.groups.classic.group import CONSUMER
from moldau.groups.commands import ClassicHeartbeat, JoinGroup, LeaveGroup, SyncGroup
from moldau.groups.consumer.departure import fence
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeat import UUID_BYTES, check_room
from moldau.groups.consumer.member import (
    ClassicFace,
    ClassicProtocol,
    ConsumerMember,
    MemberState,
    without_epochs,
)
from moldau.groups.consumer.reconciliation import advance
from moldau.groups.consumer.regexes import expect_regexes
from moldau.groups.consumer.timers import MemberJoinTimer, MemberSessionTimer, MemberSyncTimer
from moldau.groups.migration.downgrade import try_downgrade
from moldau.groups.migration.embedded_protocol import (
    partitions_by_id,
    read_subscription,
    write_assignment,
)
from moldau.groups.migration.policy import may_mix
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.kernel.uuid_text import uuid_to_text
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.messages.heartbeat import HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from moldau.protocol.messages.sync_group import SyncGroupResponse


def decide_join(
    shelf: GroupShelf, asked: JoinGroup, ticket: Ticket[JoinGroupResponse], now: Instant
) -> Decision[JoinGroupResponse]:
    """Decide a JoinGroup; a consumer group without members becomes a classic one by it."""
    group = shelf.groups.get(asked.request.group_id)
    if not isinstance(group, ConsumerGroup) or group.is_empty:
        return join.decide_join(shelf, asked, ticket, now)
    try:
        return _join(shelf, group, asked, ticket, now)
    except Refusal as refusal:
        return Decision(response=refused_join("", refusal.code))


def _join(
    shelf: GroupShelf,
    group: ConsumerGroup,
    asked: JoinGroup,
    ticket: Ticket[JoinGroupResponse],
    now: Instant,
) -> Decision[JoinGroupResponse]:
    """Let a member in, or on to the next epoch: what is a generation there is an epoch here."""
    context, request = shelf.context, asked.request
    group_id, instance_id = request.group_id, request.group_instance_id
    if not may_mix(context):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "Members may not be mixed.")
    member_id = request.member_id or uuid_to_text(context.entropy(UUID_BYTES))
    check_room(group, member_id, context.settings.group_consumer_max_size)
    _check_protocols(group, request)
    subscription = _subscription(request)
    if (
        not request.member_id
        and instance_id is None
        and asked.version >= join.FIRST_WITH_MEMBER_IDS
    ):
        return Decision(response=refused_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
    draft = ConsumerGroupDraft(group)
    replaced = None if request.member_id else group.find_static(instance_id)
    if replaced is not None:
        member = draft.replace_static(replaced, member_id)
    elif request.member_id and instance_id is not None:
        member = group.get_static(instance_id, member_id)
    else:
        member = group.members.get(member_id) or ConsumerMember(member_id)
    told = _as_told(member, asked, subscription)
    owned = partitions_by_id(subscription.owned_partitions, context.image)
    further = advance(shelf, draft, told, owned, now)
    # The last one that spoke the consumer protocol may have been started again without it.
    downgraded = try_downgrade(shelf, group, draft.group, now, (member_id, ticket))
    if downgraded is not None:
        return downgraded
    deadlines = shelf.consumers.deadlines
    deadlines.clear(MemberJoinTimer(group_id, member_id))
    sync_at = now.monotonic + told.rebalance_timeout_ms / 1000
    effects = [
        *_hear_of(shelf, group_id, further, now),
        *deadlines.set(MemberSyncTimer(group_id, member_id), sync_at),
        *expect_regexes(shelf, draft.group, now),
    ]
    response = JoinGroupResponse(
        member_id=member_id,
        generation_id=further.epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
    )
    return Decision(draft.records, response, effects, is_atomic=False)


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    classics = [member.classic for member in group.members.values() if member.classic is not None]
    spoken = [{protocol.name for protocol in classic.protocols} for classic in classics]
    has_common = any(all(each.name in names for names in spoken) for each in request.protocols)
    if request.protocol_type != CONSUMER or not has_common:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "Its protocols are not supported.")


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except ProtocolError as error:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from None


def _as_told(
    member: ConsumerMember,
    asked: JoinGroup,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    request = asked.request
    has_both = asked.version > 0
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        # The first version has one timeout for both.
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if has_both else request.session_timeout_ms
        ),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=asked.client_id,
        client_host=asked.client_host,
        classic=ClassicFace(
            request.session_timeout_ms,
            tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols),
        ),
    )


def decide_sync(
    shelf: GroupShelf, asked: SyncGroup, ticket: Ticket[SyncGroupResponse], now: Instant
) -> Decision[SyncGroupResponse]:
    """Tell a member its part, which in a consumer group the coordinator has made."""
    group, request = shelf.groups.get(asked.request.group_id), asked.request
    if not isinstance(group, ConsumerGroup):
        return sync.decide_sync(shelf, asked, ticket, now)
    member = _get_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    assert member.classic is not None, "it was found as a classic member"
    protocol = member.classic.protocols[0]
    if request.protocol_type not in {None, CONSUMER} or (
        request.protocol_name not in {None, protocol.name}
    ):
        raise Refusal(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"The member joined with {protocol.name}."
        )
    group_id = group.group_id
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return Decision(response=response, effects=_expect_join(shelf, group_id, member, now))
    shelf.consumers.deadlines.clear(MemberSyncTimer(group_id, member.member_id))
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(
            without_epochs(member.assigned), protocol.metadata, shelf.context.image
        ),
    )
    return Decision(response=response, effects=_hear_of(shelf, group_id, member, now))


def decide_heartbeat(
    shelf: GroupShelf, asked: ClassicHeartbeat, ticket: Ticket[HeartbeatResponse], now: Instant
) -> Decision[HeartbeatResponse]:
    """Hear of a member, and have it join again if there is something for it to give up or get."""
    group, request = shelf.groups.get(asked.request.group_id), asked.request
    if not isinstance(group, ConsumerGroup):
        return heartbeat.decide_heartbeat(shelf, asked, ticket, now)
    member = _get_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    effects = _hear_of(shelf, group.group_id, member, now)
    has_news = (
        member.epoch < group.epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and _can_get_all(group, member))
    )
    if not has_news:
        return Decision(response=HeartbeatResponse(), effects=effects)
    effects += _expect_join(shelf, group.group_id, member, now)
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return Decision(response=response, effects=effects)


def decide_leave(
    shelf: GroupShelf, asked: LeaveGroup, ticket: Ticket[LeaveGroupResponse], now: Instant
) -> Decision[LeaveGroupResponse]:
    """Let members go, each answered for itself; an administrator may send any of them away."""
    group, request = shelf.groups.get(asked.request.group_id), asked.request
    if not isinstance(group, ConsumerGroup):
        return leave.decide_leave(shelf, asked, ticket, now)
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in request.members:
        answer = MemberResponse(
            member_id=identity.member_id, group_instance_id=identity.group_instance_id
        )
        try:
            member = _get_leaving(group, identity)
            leaving[member.member_id] = member
        except Refusal as refusal:
            answer.error_code = refusal.code
        answers.append(answer)
    response = LeaveGroupResponse(members=answers)
    if not leaving:
        return Decision(response=response)
    return fence(shelf, group, now, *leaving.values()).answered(response)


def _get_leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id and instance_id is not None:
        # KIP-345: administrators know static members by the names of their instances.
        member_id = group.static_member_ids.get(instance_id, "")
    return _get_any(group, member_id, instance_id)


def _get_any(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.get_member(member_id)
    return group.get_static(instance_id, member_id)


def _get_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    member = _get_any(group, member_id, instance_id)
    if member.classic is None:
        raise Refusal(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    return member


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, f"The member is in generation {member.epoch}.")


def _can_get_all(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return all(
        index in member.assigned.get(topic_id, ()) or (topic_id, index) not in group.owners
        for topic_id, indexes in group.target_of(member.member_id).items()
        for index in indexes
    )


def _hear_of(
    shelf: GroupShelf, group_id: str, member: ConsumerMember, now: Instant
) -> list[Effect]:
    assert member.classic is not None, "it speaks the classic protocol"
    at = now.monotonic + member.classic.session_timeout_ms / 1000
    return [*shelf.consumers.deadlines.set(MemberSessionTimer(group_id, member.member_id), at)]


def _expect_join(
    shelf: GroupShelf, group_id: str, member: ConsumerMember, now: Instant
) -> list[Effect]:
    """Give a member its time to join again, from when it first heard that it has to."""
    timer = MemberJoinTimer(group_id, member.member_id)
    if timer in shelf.consumers.deadlines:
        return []
    at = now.monotonic + member.rebalance_timeout_ms / 1000
    return [*shelf.consumers.deadlines.set(timer, at)]
