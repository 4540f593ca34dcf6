"""Offsets that no client uses any more are forgotten, and with the last one their group."""

from typing import Final, NamedTuple

from moldau.coordination.decision import Decision, Effect, SetTimer, UnaskedDecision
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.group import Group, GroupType
from moldau.groups.offsets.group_offset import NEVER, NO_ID, GroupOffset, tombstone
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant

_MINUTE_MS = 60_000

TURN_MAX: Final = 500
"""How many groups and offsets are looked at before others have their turn; all of a group's are."""


class OffsetExpiry(NamedTuple):
    """The timer for a look at all groups of the partition, or at those that were not reached."""


def begin_offset_expiry(shelf: GroupShelf, now: Instant) -> list[Effect]:
    """Look at the groups now and then, the first time in a while."""
    interval_ms = shelf.context.settings.offsets_retention_check_interval_ms
    return [SetTimer(OffsetExpiry(), now.monotonic + interval_ms / 1000)]


def expire_offsets(shelf: GroupShelf, _key: OffsetExpiry, now: Instant) -> UnaskedDecision:
    """Decide which offsets are forgotten, and which groups are with nothing left."""
    if not shelf.unexpired:
        shelf.unexpired.extend(shelf.groups)
    records: list[StoredRecord] = []
    seen = 0
    while shelf.unexpired and seen < TURN_MAX:
        group = shelf.groups.get(shelf.unexpired.popleft())
        seen += 1
        # What share groups read is kept elsewhere; they stay until they are deleted.
        if group is not None and group.type is not GroupType.SHARE:
            seen += sum(len(each) for each in shelf.offsets.of(group.group_id).values())
            records += _gone(shelf, group, now)
    if shelf.unexpired:
        effects: list[Effect] = [SetTimer(OffsetExpiry(), now.monotonic)]
    else:
        effects = begin_offset_expiry(shelf, now)
    return Decision(records, effects=effects, is_atomic=False)


def _gone(shelf: GroupShelf, group: Group, now: Instant) -> list[StoredRecord]:
    """Return what makes a group's unused offsets forgotten, and itself if nothing is left."""
    offsets = shelf.offsets
    gone = _unused(shelf, group, now)
    is_left = len(gone) < sum(len(each) for each in offsets.of(group.group_id).values())
    if group.is_empty and not is_left and not offsets.has_open_transactions(group.group_id):
        gone += group.tombstones()
    return gone


def _unused(shelf: GroupShelf, group: Group, now: Instant) -> list[StoredRecord]:
    group_id = group.group_id
    return [
        tombstone(group_id, topic, partition)
        for topic, partitions in shelf.offsets.of(group_id).items()
        for partition, committed in partitions.items()
        if _is_unused(shelf, group, topic, committed, now)
        and not shelf.offsets.is_pending(group_id, topic, partition)
    ]


def _is_unused(
    shelf: GroupShelf, group: Group, topic: str, committed: GroupOffset, now: Instant
) -> bool:
    # A topic may have been deleted while the coordinator was on its way here.
    topics = shelf.context.image.topics
    if committed.topic_id != NO_ID and topics.find_by_id(committed.topic_id) is None:
        return True
    since_ms = group.expires_offsets_since(committed.commit_ms)
    if since_ms is None or group.is_subscribed_to(topic):
        return False
    if committed.expire_ms != NEVER:
        return now.wall_ms >= committed.expire_ms
    retention_ms = shelf.context.settings.offsets_retention_minutes * _MINUTE_MS
    return now.wall_ms - since_ms >= retention_ms
