"""How long and how often, as it is set for a group or else for all."""

from moldau.groups.context import GroupContext


def session_timeout_ms(context: GroupContext, group_id: str) -> int:
    """Return for how long a member may be silent."""
    settings = context.settings
    own = context.configs_of(group_id).get("consumer.session.timeout.ms")
    if own is None:
        return settings.group_consumer_session_timeout_ms
    least = settings.group_consumer_min_session_timeout_ms
    return min(max(int(own), least), settings.group_consumer_max_session_timeout_ms)


def heartbeat_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how often a member is to be heard of."""
    settings = context.settings
    own = context.configs_of(group_id).get("consumer.heartbeat.interval.ms")
    if own is None:
        return settings.group_consumer_heartbeat_interval_ms
    least = settings.group_consumer_min_heartbeat_interval_ms
    return min(max(int(own), least), settings.group_consumer_max_heartbeat_interval_ms)


def assignment_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how long a target stays at least: who comes and goes meanwhile is in the next."""
    settings = context.settings
    own = context.configs_of(group_id).get("consumer.assignment.interval.ms")
    if own is None:
        return settings.group_consumer_assignment_interval_ms
    least = settings.group_consumer_min_assignment_interval_ms
    return min(max(int(own), least), settings.group_consumer_max_assignment_interval_ms)
