"""Regular expressions for topics: what they stand for is found beside members' requests.

A member that brings an expression hears of the topics that it names first; a timer that runs out
at once has the expression's looked for, and a new epoch brings them with a later heartbeat.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from moldau.coordination.decision import Decision, Effect, UnaskedDecision
from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.draft import ConsumerGroupDraft
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.records import epoch_record, no_regex_record, regex_record
from moldau.groups.consumer.timers import RegexTimer
from moldau.groups.modern.topic_hash import metadata_hash
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode

REFRESH_SECONDS_MIN: Final = 10.0
"""However many topics and expressions come, those that were found are not looked for again, nor
others beside them, for this long."""


def check_regex(regex: str) -> None:
    """Refuse what is not a regular expression of RE2: others may take forever."""
    from re2 import error  # noqa: PLC0415 - few groups need it

    try:
        _compile(regex)
    except error as reason:
        words = reason.args[0]
        words = words.decode(errors="replace") if isinstance(words, bytes) else words
        raise Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {words}.",
        ) from None


def find_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    """Return those of the names that an expression stands for."""
    from re2 import error  # noqa: PLC0415 - few groups need it

    try:
        fullmatch = _compile(regex).fullmatch
    except error:
        # It was good for the coordinator that took it: another release, or another make.
        return frozenset()
    return frozenset(name for name in topics if fullmatch(name))


def _compile(regex: str) -> Any:
    """Return the expression, compiled; how much memory it takes is bounded by the library."""
    from re2 import Options, compile  # noqa: A004, PLC0415 - few groups need it

    options = Options()
    options.log_errors = False
    return compile(regex, options)


def expect_regexes(shelf: GroupShelf, group: ConsumerGroup, now: Instant) -> Sequence[Effect]:
    """Have the topics of a group's expressions looked for, if that is due."""
    timer = RegexTimer(group.group_id)
    if timer in shelf.consumers.deadlines or not _is_due(shelf, group, now):
        return ()
    return shelf.consumers.deadlines.set(timer, now.monotonic)


def _is_due(shelf: GroupShelf, group: ConsumerGroup, now: Instant) -> bool:
    used = group.regex_users.keys()
    if not used and not group.regexes:
        return False
    refreshed = shelf.consumers.refreshed(group.group_id)
    age = now.monotonic - refreshed.regexes_at
    if group.regexes and age < REFRESH_SECONDS_MIN:
        return False
    context = shelf.context
    return (
        used != group.regexes.keys()
        or refreshed.regexes_version != context.topics_version
        or age >= context.settings.group_consumer_regex_refresh_interval_ms / 1000
    )


def expire_regexes(shelf: GroupShelf, timer: RegexTimer, now: Instant) -> UnaskedDecision:
    """Find the topics of all expressions that members have by now, and go on with them."""
    effects = shelf.consumers.deadlines.fired(timer, now)
    if effects is not None:
        return Decision(effects=effects)
    group = shelf.groups.get(timer.group_id)
    if not isinstance(group, ConsumerGroup) or not group.members:
        return Decision()
    context, draft, has_more = shelf.context, ConsumerGroupDraft(group), False
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
    refreshed = shelf.consumers.refreshed(group.group_id)
    refreshed.regexes_at = now.monotonic
    refreshed.regexes_version = refreshed.topics_version = context.topics_version
    topics = metadata_hash(draft.group.topic_names(), context.image)
    if not has_more and topics == group.metadata_hash:
        return Decision(draft.records, is_atomic=False)
    # The epoch comes first: if the log has but a part of this, members are assigned once too often.
    epoch = epoch_record(group.group_id, group.epoch + 1, topics)
    return Decision([epoch, *draft.records], is_atomic=False)
