"""Groups, coordinated by whoever leads their partition of __consumer_offsets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.shard import Shard
from moldau.broker.coordinators.share_groups import delete_shares, initialize_shares
from moldau.coordination.machine import Effect
from moldau.coordination.stored_record import RecordTypes, record_types
from moldau.groups.machine import GroupMachine
from moldau.groups.share.commands import DeleteShares, ForgetSharedTopics, InitializeShares
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.topics import Topic
from moldau.protocol.stored import consumer_groups, offsets, share_groups

if TYPE_CHECKING:
    from moldau.broker.broker import Broker


class GroupCoordinator(Coordinator):
    """Has the groups of the partitions that are led here."""

    topic = "__consumer_offsets"

    def make_machine(self, partition: int) -> GroupMachine:  # noqa: ARG002 - all are alike
        """Return a machine without groups."""
        return GroupMachine(_Context(self._broker))

    def record_types(self) -> RecordTypes:
        """Return what may be in the topic."""
        return _RECORD_TYPES

    def perform(self, shard: Shard, effect: Effect) -> None:
        """Do what a group wants to be done outside of it."""
        match effect:
            case InitializeShares():
                initialize_shares(self._broker, shard, effect)
            case DeleteShares():
                delete_shares(self._broker, shard, effect)
            case _:
                raise NotImplementedError(f"{shard.replica.partition}: {effect}")

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Have groups forget topics that are gone."""
        if removed:
            command = ForgetSharedTopics(frozenset(topic.topic_id for topic in removed))
            self.submit_to_all(lambda: command, _forgotten)


def _forgotten(outcome: object) -> None:
    """A shard that could not do it remembers what nobody asks for."""


_RECORD_TYPES = record_types(offsets, consumer_groups, share_groups)


class _Context:
    """The broker, as groups see it."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.entropy = broker.environment.entropy

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""
        return self._broker.settings

    @property
    def image(self) -> ClusterImage:
        """The cluster."""
        return self._broker.image

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Return what is set for a group."""
        return self._broker.image.configs.of(Resource(ResourceType.GROUP, group_id))
