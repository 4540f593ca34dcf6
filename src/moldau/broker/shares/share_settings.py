"""What a share group may do, by its settings and the cluster's features."""

from functools import lru_cache
from typing import Final

from moldau.broker.broker_view import BrokerView
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings
from moldau.sharing.limits import ShareLimits

REMEMBERED_MAX: Final = 256
DEAD_LETTERS: Final = 2
"""The level of share.version that has them."""


def share_settings(broker: BrokerView, group_id: str) -> GroupSettings:
    """Return a group's settings."""
    configs = broker.image.configs.of(Resource(ResourceType.GROUP, group_id))
    return group_settings(broker.settings, configs)


def has_dead_letters(broker: BrokerView, settings: GroupSettings) -> bool:
    """Whether a group has a dead letter topic: the cluster has to know of such."""
    level = broker.image.levels.get(SHARE_VERSION, 0)
    return level >= DEAD_LETTERS and bool(settings.errors_deadletterqueue_topic_name)


# Every look for records asks for them.
@lru_cache(maxsize=REMEMBERED_MAX)
def share_limits(settings: GroupSettings, *, has_dead_letters: bool) -> ShareLimits:
    """Return what a group's settings allow."""
    return ShareLimits(
        settings.share_partition_max_record_locks,
        settings.share_delivery_count_limit,
        settings.share_record_lock_duration_ms / 1000,
        settings.share_renew_acknowledge_enable,
        has_dead_letters=has_dead_letters,
    )
