"""Groups, coordinated by the leader of their partition of __consumer_offsets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.patience import Patience
from moldau.broker.coordinators.record_size import record_bytes_max
from moldau.broker.coordinators.shard import Shard
from moldau.broker.coordinators.share_groups import delete_shares, initialize_shares
from moldau.broker.internal_topics import OFFSETS
from moldau.coordination.decision import Effect
from moldau.coordination.stored_record import RecordTypes, record_types
from moldau.groups.commands import (
    DeleteShares,
    ForgetSharedTopics,
    ForgetTopicOffsets,
    InitializeShares,
)
from moldau.groups.machine import GroupMachine
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.topics import Topic
from moldau.protocol.stored import consumer_groups, offsets, share_groups

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker


class GroupCoordinator(Coordinator):
    """Has the groups of the partitions that are led here."""

    topic = OFFSETS

    def __init__(self, broker: "CoordinatingBroker") -> None:
        super().__init__(broker)
        self._context = _Context(broker)

    def make_machine(self) -> GroupMachine:
        """Return a machine without groups."""
        return GroupMachine(self._context)

    def record_types(self) -> RecordTypes:
        """Return what may be in the topic."""
        return _RECORD_TYPES

    def make_patience(self) -> Patience:
        """Return how long groups wait."""
        broker = self._broker
        return Patience(broker.environment, lambda: broker.settings.offsets_commit_timeout_ms)

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Have groups look at their topics again; forget what belonged to those that went."""
        self._context.topics_version += 1
        if removed:
            topics = [(topic.name, topic.topic_id) for topic in removed]
            self.submit_to_all(ForgetTopicOffsets(topics), lambda _outcome: None)
            shared = ForgetSharedTopics(frozenset(topic.topic_id for topic in removed))
            self.submit_to_all(shared, lambda _outcome: None)

    def perform(self, shard: Shard, effect: Effect) -> None:
        """Do what a group wants to be done outside of it."""
        match effect:
            case InitializeShares():
                initialize_shares(self._broker, shard, effect)
            case DeleteShares():
                delete_shares(self._broker, shard, effect)
            case _:
                raise AssertionError(f"{shard.replica.partition} wants {effect}")


_RECORD_TYPES = record_types(offsets, consumer_groups, share_groups)


class _Context:
    """The broker, as groups see it."""

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker
        self.entropy = broker.environment.entropy
        self.topics_version = 0

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""
        return self._broker.settings

    @property
    def image(self) -> ClusterImage:
        """The cluster."""
        return self._broker.image

    @property
    def record_bytes_max(self) -> int:
        """How large a record may be, by the settings of the groups' topic."""
        return record_bytes_max(self._broker, GroupCoordinator.topic)

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Return what is set for a group."""
        return self._broker.image.configs.of(Resource(ResourceType.GROUP, group_id))
