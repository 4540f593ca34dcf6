"""The cluster image: what a log of metadata records adds up to."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from moldau.metadata.brokers import Brokers
from moldau.metadata.configs import Configs
from moldau.metadata.errors import ReplayError, UnsupportedLevelError
from moldau.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    LOWEST_LEVEL,
    METADATA_VERSION,
    feature_records,
    refuse_level,
)
from moldau.metadata.kept import KeptRecords
from moldau.metadata.topics import Topics
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


class ClusterImage:
    """Topics, brokers, configs and all else that metadata records say; `replay` alone changes it.

    What is inside a transaction of metadata shows when the transaction ends, all at once.
    """

    def __init__(self) -> None:
        self.levels: dict[str, int] = {METADATA_VERSION: LOWEST_LEVEL}
        self.brokers = Brokers()
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.topics = Topics()
        self.configs = Configs()
        self.next_producer_id = 0
        self.kept = KeptRecords()
        self.is_empty = True
        """Whether no record was applied yet: the log is new, or ends inside its first records."""
        self._transaction: list[Message] | None = None

    @property
    def level(self) -> int:
        """The level of metadata.version, which says how records are written."""
        return self.levels[METADATA_VERSION]

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether replicas that left the in-sync set last may still be elected (KIP-966)."""
        return self.levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._transaction is not None

    def replay(self, record: Message) -> None:
        """Apply a record; `ReplayError` if it does not fit what is there."""
        match record:
            case BeginTransactionRecord():
                if self._transaction is not None:
                    raise ReplayError("a transaction of metadata begins inside another")
                self._transaction = []
            case EndTransactionRecord() | AbortTransactionRecord():
                if self._transaction is None:
                    raise ReplayError("a transaction of metadata ends that has not begun")
                transaction, self._transaction = self._transaction, None
                if isinstance(record, EndTransactionRecord):
                    for held in transaction:
                        self._apply(held)
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._apply(record)

    def _apply(self, record: Message) -> None:
        _REPLAY[type(record)](self, record)
        self.is_empty = False

    def copy(self) -> "ClusterImage":
        """Return a copy that does not change with this one, to write a snapshot from at leisure."""
        assert self._transaction is None, "a transaction is half a change"
        copied = ClusterImage()
        copied.levels = dict(self.levels)
        copied.brokers = self.brokers.copy()
        copied.controllers = dict(self.controllers)
        copied.topics = self.topics.copy()
        copied.configs = self.configs.copy()
        copied.next_producer_id = self.next_producer_id
        copied.kept = self.kept.copy()
        copied.is_empty = self.is_empty
        return copied

    def records(self) -> Iterator[Message]:
        """Return the records of a snapshot: replayed into an empty image, they make this one."""
        assert self._transaction is None, "a transaction is half a change"
        yield from feature_records(self.levels)
        yield from self.brokers.by_id.values()
        yield from self.controllers.values()
        for topic in self.topics:
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for index, partition in topic.partitions.items():
                yield partition.to_record(topic.topic_id, index, self.level)
        yield from self.configs.records()
        yield from self.kept.records(ClientQuotaRecord)
        if self.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, next_producer_id=self.next_producer_id)
        yield from self.kept.records(AccessControlEntryRecord)
        yield from self.kept.records(UserScramCredentialRecord)
        yield from self.kept.records(DelegationTokenRecord)


def _replay_feature(image: ClusterImage, record: FeatureLevelRecord) -> None:
    refusal = refuse_level(record.name, record.feature_level)
    if refusal is not None:
        raise UnsupportedLevelError(refusal)
    if record.feature_level:
        image.levels[record.name] = record.feature_level
    else:
        image.levels.pop(record.name, None)


def _replay_topic_removal(image: ClusterImage, record: RemoveTopicRecord) -> None:
    topic = image.topics.remove(record.topic_id)
    image.configs.remove_topic(topic.name)


def _replay_controller(image: ClusterImage, record: RegisterControllerRecord) -> None:
    image.controllers[record.controller_id] = record


def _replay_producer_ids(image: ClusterImage, record: ProducerIdsRecord) -> None:
    image.next_producer_id = record.next_producer_id


def _keep(image: ClusterImage, record: Message) -> None:
    image.kept.replay(record)


def _pass(_image: ClusterImage, _record: Message) -> None:
    """Apply what changes nothing."""


_REPLAY: Final[dict[type[Message], Callable[[ClusterImage, Any], None]]] = {
    FeatureLevelRecord: _replay_feature,
    RegisterBrokerRecord: lambda image, record: image.brokers.replay_registration(record),
    UnregisterBrokerRecord: lambda image, record: image.brokers.replay_unregistration(
        record.broker_id, record.broker_epoch
    ),
    FenceBrokerRecord: lambda image, record: image.brokers.replay_fencing(
        record.id, record.epoch, fenced=True
    ),
    UnfenceBrokerRecord: lambda image, record: image.brokers.replay_fencing(
        record.id, record.epoch, fenced=False
    ),
    BrokerRegistrationChangeRecord: lambda image, record: image.brokers.replay_change(record),
    RegisterControllerRecord: _replay_controller,
    TopicRecord: lambda image, record: image.topics.replay_topic(record),
    PartitionRecord: lambda image, record: image.topics.replay_partition(record),
    PartitionChangeRecord: lambda image, record: image.topics.replay_partition_change(record),
    RemoveTopicRecord: _replay_topic_removal,
    ClearElrRecord: lambda image, record: image.topics.replay_clear_eligible_leaders(
        record.topic_name
    ),
    ConfigRecord: lambda image, record: image.configs.replay(record),
    ProducerIdsRecord: _replay_producer_ids,
    ClientQuotaRecord: _keep,
    AccessControlEntryRecord: _keep,
    RemoveAccessControlEntryRecord: _keep,
    UserScramCredentialRecord: _keep,
    RemoveUserScramCredentialRecord: _keep,
    DelegationTokenRecord: _keep,
    RemoveDelegationTokenRecord: _keep,
    NoOpRecord: _pass,
    # Clusters that began with ZooKeeper say that they have left it.
    ZkMigrationStateRecord: _pass,
}
