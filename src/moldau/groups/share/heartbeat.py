"""Members of share groups join, tell that they are there, and leave."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision, Effect, SetTimer, UnaskedDecision
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.commands import InitializeShares, ShareHeartbeat
from moldau.groups.modern.partitions import Partitions
from moldau.groups.modern.record_size import check_size
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.groups.share import records
from moldau.groups.share.assignor import assign
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.member import ShareGroupMember, subscribed_names
from moldau.groups.share.states import as_configured, begun, find_missing
from moldau.groups.share.topics import subscribed_topics
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import share_group_heartbeat as wire
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

JOINING = 0
LEAVING = -1


@dataclass(frozen=True, slots=True)
class ShareSessionTimer:
    """A member should have been heard of by now."""

    group_id: str
    member_id: str


def decide_heartbeat(
    shelf: GroupShelf,
    asked: ShareHeartbeat,
    ticket: Ticket[ShareGroupHeartbeatResponse],
    now: Instant,
) -> Decision[ShareGroupHeartbeatResponse]:
    """Let a member join, stay or leave."""
    request = asked.request
    _check(request)
    if request.member_epoch == LEAVING:
        return _leave(shelf, request)
    group = shelf.get_share_group(request.group_id, create=request.member_epoch == JOINING)
    settings = group_settings(shelf.context.settings, shelf.context.configs_of(group.group_id))
    member = _member(shelf, group, request)
    return _Heartbeat(shelf, group, settings, member, asked, now).decide(ticket)


def expire_session(shelf: GroupShelf, key: ShareSessionTimer, now: Instant) -> UnaskedDecision:
    """Give up a member that was not heard of."""
    group = shelf.groups.get(key.group_id)
    if not isinstance(group, ShareGroup) or key.member_id not in group.members:
        return Decision()
    deadline = group.deadlines.get(key.member_id, now.monotonic)
    if deadline > now.monotonic:
        return Decision(effects=[SetTimer(key, deadline)])
    return Decision(_removal(shelf, group, key.member_id))


def begin_sessions(shelf: GroupShelf, now: Instant) -> list[Effect]:
    """Give all members the time to be heard of again: a new coordinator knows nothing of it."""
    effects: list[Effect] = []
    for group in shelf.groups.values():
        if isinstance(group, ShareGroup):
            settings = group_settings(
                shelf.context.settings, shelf.context.configs_of(group.group_id)
            )
            until = now.monotonic + settings.share_session_timeout_ms / 1000
            for member_id in group.members:
                group.deadlines[member_id] = until
                effects.append(SetTimer(ShareSessionTimer(group.group_id, member_id), until))
    return effects


def _check(request: ShareGroupHeartbeatRequest) -> None:
    def refuse(words: str) -> Refusal:
        return Refusal(ErrorCode.INVALID_REQUEST, words)

    if not request.member_id.strip():
        raise refuse("MemberId can't be empty.")
    if not request.group_id.strip():
        raise refuse("GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise refuse("RackId can't be empty.")
    if request.member_epoch == JOINING and not request.subscribed_topic_names:
        raise refuse("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING:
        raise refuse("MemberEpoch is invalid.")


def _member(
    shelf: GroupShelf, group: ShareGroup, request: ShareGroupHeartbeatRequest
) -> ShareGroupMember:
    member = group.members.get(request.member_id)
    if member is None:
        if request.member_epoch != JOINING:
            raise Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {request.member_id} is not a member of group {group.group_id}.",
            )
        size_max = shelf.context.settings.group_share_max_size
        if len(group.members) >= size_max:
            raise Refusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"The share group has {size_max} members already."
            )
        return ShareGroupMember(request.member_id)
    if request.member_epoch not in (JOINING, member.epoch, member.previous_epoch) or (
        request.member_epoch > member.epoch
    ):
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is at epoch {member.epoch}, not {request.member_epoch}:"
            " it has to give up its partitions and join again.",
        )
    return member


class _Heartbeat:
    """A heartbeat of a member that is allowed to be in the group."""

    def __init__(
        self,
        shelf: GroupShelf,
        group: ShareGroup,
        settings: GroupSettings,
        member: ShareGroupMember,
        asked: ShareHeartbeat,
        now: Instant,
    ) -> None:
        self._shelf = shelf
        self._group = group
        self._settings = settings
        self._member = member
        self._asked = asked
        self._now = now
        self._retry_ms = shelf.context.settings.group_share_initialize_retry_interval_ms
        self._records: list[StoredRecord] = []
        names = asked.request.subscribed_topic_names
        rack_id = asked.request.rack_id
        self._updated = replace(
            member,
            rack_id=member.rack_id if rack_id is None else rack_id,
            subscribed=member.subscribed if names is None else tuple(sorted(set(names))),
            client_id=asked.client_id,
            client_host=asked.client_host,
        )
        members = {**group.members, member.member_id: self._updated}
        self._members = members
        image, subscribed = shelf.context.image, subscribed_names(members.values())
        self._topics = subscribed_topics(subscribed, image.topics)
        self._ids = {topic.name: topic_id for topic_id, topic in self._topics.items()}
        self._hash = metadata_hash(subscribed, image)

    def decide(
        self, ticket: Ticket[ShareGroupHeartbeatResponse]
    ) -> Decision[ShareGroupHeartbeatResponse]:
        """Bring group, targets and member to what they have to be now, in this order."""
        group, member_id = self._group, self._member.member_id
        is_known = member_id in group.members
        if self._updated != self._member or not is_known:
            self._records.append(records.member(group.group_id, member_id, self._updated))
        group_epoch = self._group_epoch(is_known=is_known)
        assignment_epoch, targets = self._targets(group_epoch)
        member = self._reconciled(assignment_epoch, targets.get(member_id, {}))
        missing = find_missing(group, self._topics, self._now, self._retry_ms)
        if missing:
            self._records.append(begun(group, missing))
        check_size(self._shelf.context, self._records)
        self._shelf.keep_forming(group)
        effects = self._keep_alive(member_id)
        response = self._response(member)
        if missing:
            group.initializing_since = self._now.monotonic
            effects.append(
                InitializeShares(
                    group.group_id, group_epoch, as_configured(missing), ticket, response
                )
            )
        # Whatever part of the records is in the log, the next heartbeat goes on from there.
        return Decision(self._records, None if missing else response, effects, is_atomic=False)

    def _group_epoch(self, *, is_known: bool) -> int:
        group = self._group
        has_changed = (
            not is_known
            or self._updated.subscribed != self._member.subscribed
            or self._hash != group.metadata_hash
            or (group.epoch <= group.assignment_epoch and self._has_unassigned())
        )
        if not has_changed:
            return group.epoch
        self._records.append(records.epoch(group.group_id, (group.epoch + 1, self._hash)))
        return group.epoch + 1

    def _assignable(self) -> Partitions:
        """What has a share state, of the topics that members want to read."""
        initialized = self._group.topics.initialized
        return {
            topic_id: initialized[topic_id].partitions & topic.partitions
            for topic_id, topic in self._topics.items()
            if topic_id in initialized
        }

    def _has_unassigned(self) -> bool:
        assigned: dict[bytes, set[int]] = {}
        for target in self._group.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            assigned.get(topic_id, set()) != partitions
            for topic_id, partitions in self._assignable().items()
        )

    def _targets(self, group_epoch: int) -> tuple[int, Mapping[str, Partitions]]:
        group, now_ms = self._group, self._now.wall_ms
        due_ms = group.assignment_ms + self._settings.share_assignment_interval_ms
        # A clock that was set back must not hold it up.
        is_early = group.assignment_ms <= now_ms < due_ms
        if group_epoch <= group.assignment_epoch or is_early:
            return group.assignment_epoch, group.targets
        subscriptions = {
            member_id: self._topic_ids(member) for member_id, member in self._members.items()
        }
        targets = assign(subscriptions, self._assignable(), group.targets)
        for member_id, target in targets.items():
            if group.targets.get(member_id) != target:
                self._records.append(records.target(group.group_id, member_id, target))
        self._records.append(records.target_epoch(group.group_id, (group_epoch, now_ms)))
        return group_epoch, targets

    def _topic_ids(self, member: ShareGroupMember) -> frozenset[TopicId]:
        ids = self._ids
        return frozenset(ids[name] for name in member.subscribed if name in ids)

    def _reconciled(self, assignment_epoch: int, target: Partitions) -> ShareGroupMember:
        member = self._updated
        is_moved = member.epoch != assignment_epoch
        if not is_moved and member.subscribed == self._member.subscribed:
            return member
        # The target may be older than what the member reads now.
        topic_ids = self._topic_ids(member)
        assigned = {
            topic_id: partitions for topic_id, partitions in target.items() if topic_id in topic_ids
        }
        if not is_moved and assigned == member.assigned:
            return member
        member = replace(
            member,
            epoch=assignment_epoch,
            previous_epoch=member.epoch if is_moved else member.previous_epoch,
            assigned=assigned,
        )
        self._records.append(
            records.current_assignment(self._group.group_id, member.member_id, member)
        )
        return member

    def _keep_alive(self, member_id: str) -> list[Effect]:
        group = self._group
        until = self._now.monotonic + self._settings.share_session_timeout_ms / 1000
        has_timer = member_id in group.deadlines
        group.deadlines[member_id] = until
        if has_timer:
            return []
        return [SetTimer(ShareSessionTimer(group.group_id, member_id), until)]

    def _response(self, member: ShareGroupMember) -> ShareGroupHeartbeatResponse:
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._settings.share_heartbeat_interval_ms,
        )
        request = self._asked.request
        if (
            request.subscribed_topic_names is not None
            or request.member_epoch == JOINING
            or member.assigned != self._member.assigned
        ):
            response.assignment = wire.Assignment(
                topic_partitions=[
                    wire.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in member.assigned.items()
                ]
            )
        return response


def _leave(
    shelf: GroupShelf, request: ShareGroupHeartbeatRequest
) -> Decision[ShareGroupHeartbeatResponse]:
    group = shelf.get_share_group(request.group_id)
    if request.member_id not in group.members:
        raise Refusal(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Decision(_removal(shelf, group, request.member_id), response)


def _removal(shelf: GroupShelf, group: ShareGroup, member_id: str) -> list[StoredRecord]:
    rest = [member for member in group.members.values() if member.member_id != member_id]
    hashed = metadata_hash(subscribed_names(rest), shelf.context.image)
    return [
        records.current_assignment(group.group_id, member_id, None),
        records.target(group.group_id, member_id, None),
        records.member(group.group_id, member_id, None),
        records.epoch(group.group_id, (group.epoch + 1, hashed)),
    ]
