"""Whether groups may change their protocol while members stay (group.consumer.migration.policy)."""

from moldau.groups.context import GroupContext


def may_upgrade(context: GroupContext) -> bool:
    """Whether a classic group may become a consumer group."""
    return _policy(context) in {"BIDIRECTIONAL", "UPGRADE"}


def may_downgrade(context: GroupContext) -> bool:
    """Whether a consumer group may become a classic group."""
    return _policy(context) in {"BIDIRECTIONAL", "DOWNGRADE"}


def may_mix(context: GroupContext) -> bool:
    """Whether members that speak the classic protocol may be in a consumer group at all."""
    return _policy(context) != "DISABLED"


def _policy(context: GroupContext) -> str:
    return context.settings.group_consumer_migration_policy.upper()
