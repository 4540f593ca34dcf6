"""Topics by regular expression, found by the coordinator in time linear in their names."""

from collections.abc import Iterable
from typing import Any, Final

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.records import no_regex_record, regex_record
from moldau.groups.consumer.soft import Refreshed
from moldau.groups.context import GroupContext
from moldau.groups.modern.draft import Draft
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode

REFRESH_SECONDS_MIN: Final = 10.0
"""However many topics come, all are gone through for a group no more often than this."""


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


def refresh_regexes(
    context: GroupContext, draft: Draft[ConsumerGroup], now: Instant, *, is_due: bool
) -> bool:
    """Find the topics of new expressions, or those of all; say whether any differ."""
    group = draft.group
    used = {member.topic_regex for member in group.members.values()} - {""}
    for regex in sorted(group.regexes.keys() - used):
        draft.write(no_regex_record(group.group_id, regex))
    has_changed = False
    for regex in sorted(used if is_due else used - group.regexes.keys()):
        names = _find(regex, (topic.name for topic in context.image.topics))
        if group.regexes.get(regex) != names:
            draft.write(regex_record(group.group_id, regex, names, now.wall_ms))
            has_changed = True
    return has_changed


def is_refresh_due(context: GroupContext, refreshed: Refreshed, now: Instant) -> bool:
    """Whether topics of known expressions have to be looked for again."""
    age = now.monotonic - refreshed.regexes_at
    if age < REFRESH_SECONDS_MIN:
        return False
    interval = context.settings.group_consumer_regex_refresh_interval_ms / 1000
    return age >= interval or refreshed.regexes_version != context.topics_version


def _find(regex: str, topics: Iterable[str]) -> frozenset[str]:
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
