"""Share states, coordinated by the leader of their partition of __share_group_state."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.shard import Shard
from moldau.broker.internal_topics import SHARE_STATE
from moldau.coordination.command import Done
from moldau.coordination.decision import Effect
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import RecordTypes, record_types
from moldau.kernel.ids import Offset
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.topics import Topic
from moldau.protocol.stored import share_group_state
from moldau.sharing.commands import DeleteBefore, ForgetTopicStates
from moldau.sharing.machine import ShareMachine

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker


class ShareCoordinator(Coordinator):
    """Has the share states of the partitions that are led here."""

    topic = SHARE_STATE

    def make_machine(self) -> ShareMachine:
        """Return a machine without states."""
        return ShareMachine(_Context(self._broker))

    def record_types(self) -> RecordTypes:
        """Return what may be in the topic."""
        return _RECORD_TYPES

    def perform(self, shard: Shard, effect: Effect) -> None:
        """Delete what is not needed any more."""
        assert isinstance(effect, DeleteBefore), f"{shard.replica.partition}: {effect}"
        log = shard.replica.log
        if log is not None and log.log_start < effect.offset <= log.high_watermark:
            self._broker.logs.delete_records(shard.replica.partition, effect.offset, _deleted)

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Forget what was shared of topics that are gone."""
        if removed:
            command = ForgetTopicStates(frozenset(topic.topic_id for topic in removed))
            self.submit_to_all(command, _forgotten)


_RECORD_TYPES = record_types(share_group_state)


def _deleted(log_start: Offset | None) -> None:
    """If the log's start could not be moved, the next time may do."""


def _forgotten(_outcome: Done | Refusal) -> None:
    """A shard that could not do it has a state that no group asks for."""


class _Context:
    """The broker, as share states see it."""

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""
        return self._broker.settings

    def has_partition(self, topic_id: bytes, partition: int) -> bool:
        """Whether the cluster has a partition."""
        topic = self._broker.image.topics.find_by_id(topic_id)
        return topic is not None and partition in topic.partitions
