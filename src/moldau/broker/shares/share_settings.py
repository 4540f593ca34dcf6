"""What a share group may do, by its settings and the cluster's features."""

from typing import Final

from moldau.broker.broker_view import BrokerView
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings

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
