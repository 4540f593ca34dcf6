"""What a share group may do, by its settings and the cluster's features."""

from functools import lru_cache
from typing import Final, NamedTuple

from moldau.broker.broker_view import BrokerView
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings
from moldau.sharing.limits import ShareLimits

REMEMBERED_MAX: Final = 256
DEAD_LETTERS: Final = 2
"""The level of share.version that has them."""
READ_COMMITTED: Final = "read_committed"


class ShareTerms(NamedTuple):
    """The limits and rights of a group."""

    settings: GroupSettings
    limits: ShareLimits
    is_stable: bool
    """Whether its members see nothing of transactions that are open, or were aborted."""


def share_settings(broker: BrokerView, group_id: str) -> GroupSettings:
    """Return a group's settings."""
    return group_settings(broker.settings, broker.image.configs.of(_resource(group_id)))


def share_terms(broker: BrokerView, group_id: str) -> ShareTerms:
    """Return what a group may do now."""
    level = broker.image.levels.get(SHARE_VERSION, 0)
    return _terms(share_settings(broker, group_id), level >= DEAD_LETTERS)


# Each look for records, and each acknowledgement, asks for all of this.
@lru_cache(maxsize=REMEMBERED_MAX)
def _resource(group_id: str) -> Resource:
    return Resource(ResourceType.GROUP, group_id)


@lru_cache(maxsize=REMEMBERED_MAX)
def _terms(settings: GroupSettings, may_have_dead_letters: bool) -> ShareTerms:  # noqa: FBT001
    limits = ShareLimits(
        settings.share_partition_max_record_locks,
        settings.share_delivery_count_limit,
        settings.share_record_lock_duration_ms / 1000,
        settings.share_renew_acknowledge_enable,
        # The cluster has to know of such topics.
        has_dead_letters=may_have_dead_letters and bool(settings.errors_deadletterqueue_topic_name),
    )
    return ShareTerms(settings, limits, settings.share_isolation_level == READ_COMMITTED)
