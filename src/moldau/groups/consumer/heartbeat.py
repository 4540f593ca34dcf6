"""A member's heartbeat: it joins, tells what it reads and has, and hears what it gets."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.advancing import advance, expect_revocation
from moldau.groups.consumer.finding import draft_to_join, get_consumer_group
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.leaving import decide_leave
from moldau.groups.consumer.limits import heartbeat_interval_ms, session_timeout_ms
from moldau.groups.consumer.member import (
    JOINING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
    without_epochs,
)
from moldau.groups.consumer.resolving import expect_regexes
from moldau.groups.consumer.sessions import begin_group
from moldau.groups.consumer.soft import SessionTimer
from moldau.groups.consumer.static import get_static, take_place
from moldau.groups.modern.draft import Draft
from moldau.groups.modern.partitions import Partitions, partitions_of
from moldau.kernel.clock import Instant
from moldau.kernel.uuid_text import uuid_to_text
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine

UUID_BYTES: Final = 16

Heartbeat = Asked[ConsumerGroupHeartbeatRequest]


def decide_heartbeat(
    machine: "GroupMachine", asked: Heartbeat, _ticket: Ticket, now: Instant
) -> Decision:
    """Decide a request that was checked; `Refusal` says what the member has to do."""
    request = asked.request
    if request.member_epoch < JOINING:
        return decide_leave(machine, request, now)
    group_id, context = request.group_id, machine.context
    if request.member_epoch == JOINING:
        draft = draft_to_join(machine, group_id)
    else:
        draft = Draft(get_consumer_group(machine, group_id))
    check_room(draft.group, request.member_id, context.settings.group_consumer_max_size)
    member_id = request.member_id or uuid_to_text(context.entropy(UUID_BYTES))
    owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
    member = _find_member(draft, request, member_id, owned)
    told = _as_told(member, asked)
    further = advance(machine, draft, told, owned, now)
    at = now.monotonic + session_timeout_ms(context, group_id) / 1000
    effects = [*draft.effects]
    if isinstance(machine.groups.get(group_id), ClassicGroup):
        # It becomes this one: its members have their sessions here from now on.
        effects += begin_group(machine, draft.group, now)
    effects += [
        *machine.consumers.deadlines.set(SessionTimer(group_id, member_id), at),
        *expect_revocation(machine, group_id, told, further, now),
        *expect_regexes(machine, draft.group, now),
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


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse more members than there may be."""
    if len(group.members) >= size_max and member_id not in group.members:
        raise Refusal(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def _find_member(
    draft: Draft[ConsumerGroup],
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Partitions | None,
) -> ConsumerMember:
    """Return who asks: a member, somebody new, or somebody who takes a static member's place."""
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
        return take_place(draft, static, member_id)
    if instance_id is None:
        member = group.get_member(member_id)
    else:
        member = get_static(group, instance_id, member_id)
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


def _as_told(member: ConsumerMember, asked: Heartbeat) -> ConsumerMember:
    """Return the member with what it tells; what it leaves out stays as it was."""
    request = asked.request
    told: dict[str, object] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "server_assignor": request.server_assignor,
        "topic_regex": request.subscribed_topic_regex,
    }
    told = {name: value for name, value in told.items() if value is not None}
    if request.rebalance_timeout_ms != -1:
        told["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.subscribed_topic_names is not None:
        told["topic_names"] = frozenset(request.subscribed_topic_names)
    return replace(
        member,
        client_id=asked.client_id,
        client_host=asked.client_host,
        classic=None,
        **told,  # type: ignore[arg-type]
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
