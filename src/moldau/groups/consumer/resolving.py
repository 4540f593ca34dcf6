"""What members' regular expressions stand for, found beside their requests.

A member that brings an expression hears of the topics that it names first; a timer that runs out
at once has the expression's looked for, and a new epoch brings them with a later heartbeat.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from moldau.coordination.machine import Decision, Effect
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.records import epoch_record, no_regex_record, regex_record
from moldau.groups.consumer.regexes import find_topics
from moldau.groups.consumer.soft import RegexTimer
from moldau.groups.modern.draft import Draft
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.kernel.clock import Instant

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine

REFRESH_SECONDS_MIN: Final = 10.0
"""However many topics and expressions come, those that were found are not looked for again, nor
others beside them, for this long."""


def expect_regexes(machine: "GroupMachine", group: ConsumerGroup, now: Instant) -> Sequence[Effect]:
    """Have the topics of a group's expressions looked for, if that is due."""
    timer = RegexTimer(group.group_id)
    if timer in machine.consumers.deadlines or not _is_due(machine, group, now):
        return ()
    return machine.consumers.deadlines.set(timer, now.monotonic)


def _is_due(machine: "GroupMachine", group: ConsumerGroup, now: Instant) -> bool:
    used = group.regex_users.keys()
    if not used and not group.regexes:
        return False
    refreshed = machine.consumers.refreshed(group.group_id)
    age = now.monotonic - refreshed.regexes_at
    if group.regexes and age < REFRESH_SECONDS_MIN:
        return False
    context = machine.context
    return (
        used != group.regexes.keys()
        or refreshed.regexes_version != context.topics_version
        or age >= context.settings.group_consumer_regex_refresh_interval_ms / 1000
    )


def expire_regexes(machine: "GroupMachine", timer: RegexTimer, now: Instant) -> Decision:
    """Find the topics of all expressions that members have by now, and go on with them."""
    effects = machine.consumers.deadlines.fired(timer, now)
    if effects is not None:
        return Decision(effects=effects)
    group = machine.groups.get(timer.group_id)
    if not isinstance(group, ConsumerGroup) or not group.members:
        return Decision()
    context, draft, has_more = machine.context, Draft(group), False
    for regex in sorted(group.unused_regexes()):
        draft.write(no_regex_record(group.group_id, regex))
    for regex in sorted(group.regex_users):
        found = find_topics(regex, (topic.name for topic in context.image.topics))
        known = group.regexes.get(regex)
        record = regex_record(group.group_id, regex, found, now.wall_ms)
        # One that stands for more topics than a record can hold stays without.
        if found != known and record.fits(context.record_bytes_max):
            draft.write(record)
            # What is not found any more was deleted: the hash tells, as for topics with names.
            has_more |= not found <= (known or frozenset())
    refreshed = machine.consumers.refreshed(group.group_id)
    refreshed.regexes_at = now.monotonic
    refreshed.regexes_version = refreshed.topics_version = context.topics_version
    topics = metadata_hash(draft.group.topic_names(), context.image)
    if not has_more and topics == group.metadata_hash:
        return Decision(draft.records, is_atomic=False)
    # The epoch comes first: if the log has but a part of this, members are assigned once too often.
    epoch = epoch_record(group.group_id, group.epoch + 1, topics)
    return Decision([epoch, *draft.records], is_atomic=False)
