"""Requests of classic members: their group may be classic, or a consumer group by now."""

from typing import TYPE_CHECKING

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.groups.classic import heartbeat, join, leave, sync
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.migration import members
from moldau.kernel.clock import Instant
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def decide_join(
    machine: "GroupMachine", asked: Asked[JoinGroupRequest], ticket: Ticket, now: Instant
) -> Decision:
    """Decide a JoinGroup; a consumer group without members becomes a classic one by it."""
    group = machine.groups.get(asked.request.group_id)
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return members.decide_join(machine, group, asked, ticket, now)
    return join.decide_join(machine, asked, ticket, now)


def decide_sync(
    machine: "GroupMachine", asked: Asked[SyncGroupRequest], ticket: Ticket, now: Instant
) -> Decision:
    """Decide a SyncGroup."""
    group = machine.groups.get(asked.request.group_id)
    if isinstance(group, ConsumerGroup):
        return members.decide_sync(machine, group, asked.request, now)
    return sync.decide_sync(machine, asked, ticket, now)


def decide_heartbeat(
    machine: "GroupMachine", asked: Asked[HeartbeatRequest], ticket: Ticket, now: Instant
) -> Decision:
    """Decide a Heartbeat."""
    group = machine.groups.get(asked.request.group_id)
    if isinstance(group, ConsumerGroup):
        return members.decide_heartbeat(machine, group, asked.request, now)
    return heartbeat.decide_heartbeat(machine, asked, ticket, now)


def decide_leave(
    machine: "GroupMachine", asked: Asked[LeaveGroupRequest], ticket: Ticket, now: Instant
) -> Decision:
    """Decide a LeaveGroup."""
    group = machine.groups.get(asked.request.group_id)
    if isinstance(group, ConsumerGroup):
        return members.decide_leave(machine, group, asked.request, now)
    return leave.decide_leave(machine, asked, ticket, now)
