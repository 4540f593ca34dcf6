"""How long and how often, as it is set for a group or else for all."""

from moldau.groups.context import GroupContext
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings


def session_timeout_ms(context: GroupContext, group_id: str) -> int:
    """Return for how long a member may be silent."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_session_timeout_ms,
        _of(context, group_id).consumer_session_timeout_ms,
        settings.group_consumer_max_session_timeout_ms,
    )


def heartbeat_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how often a member is to be heard of."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_heartbeat_interval_ms,
        _of(context, group_id).consumer_heartbeat_interval_ms,
        settings.group_consumer_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how long a target stays at least: who comes and goes meanwhile is in the next."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_assignment_interval_ms,
        _of(context, group_id).consumer_assignment_interval_ms,
        settings.group_consumer_max_assignment_interval_ms,
    )


def _of(context: GroupContext, group_id: str) -> GroupSettings:
    return group_settings(context.settings, context.configs_of(group_id))


def _within(least: int, value: int, largest: int) -> int:
    """Hold what was set for a group to limits that may have been set later."""
    return min(max(value, least), largest)
