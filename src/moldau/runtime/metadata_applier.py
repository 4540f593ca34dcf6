"""Acting on committed metadata: this broker's logs, leaders and settings follow the image."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from moldau.broker.broker import Broker
from moldau.kernel.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError, PartitionOfflineError
from moldau.log.partition import PartitionLog
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.metadata.settings.effective import broker_settings
from moldau.metadata.settings.setting import SettingError
from moldau.metadata.topics import Partition, Topic, is_reserved
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    AbortTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from moldau.runtime.controller_host import Change
from moldau.runtime.directory_assignments import DirectoryAssignments
from moldau.runtime.log_configs import TopicConfigs, dynamic_layers
from moldau.runtime.log_store import LogStore
from moldau.runtime.turns import Turns

logger = logging.getLogger(__name__)

DELETED_AT_ONCE_MAX = 200
"""How many partitions are deleted before new ones of their names may come."""
RETRY_SECONDS = 1.0
"""How long a full disk is left alone before deleting is tried again."""
LARGE = 200
"""So many records in one change make thousands of objects, which all stay."""


@dataclass(slots=True)
class _Touched:
    """What a change, or a transaction of several, is about."""

    names: dict[bytes, str] = field(default_factory=dict)
    """New topics that the image does not show yet."""
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """What is set for them."""
    declared: list[TopicPartition] = field(default_factory=list)
    partitions: dict[tuple[bytes, int], None] = field(default_factory=dict)
    removed: list[Topic] = field(default_factory=list)
    resources: dict[Resource, None] = field(default_factory=dict)


class CannotFollowError(Exception):
    """Committed metadata cannot be applied: this node does not know what the cluster is."""


class MetadataApplier:
    """Takes in committed changes one after the other.

    Logs of new partitions are there before the image shows the topic; what is deleted is out of
    the image and out of service at once, and its files go in the background. A log directory that
    fails takes its partitions offline, and the node goes on. Any other failure leaves an image or
    replicas that are not what the log says: the change is not answered as done, and the node ends.
    """

    def __init__(
        self,
        broker: Broker,
        store: LogStore,
        topic_configs: TopicConfigs,
        assignments: DirectoryAssignments,
        *,
        flush: Callable[[], None],
        settings_changed: Callable[[], None],
        applied: Callable[[Offset], None],
        grown: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._store = store
        self._topic_configs = topic_configs
        self._assignments = assignments
        self._flush = flush
        """Write what requests of this turn have staged: a log is changed between writes."""
        self._settings_changed = settings_changed
        self._applied = applied
        self._grown = grown
        self._queue: deque[Change] = deque()
        self._has_given_up = False
        self.failures = 0
        """How many partitions and changes could not be had as metadata says."""
        self._wake = asyncio.Event()
        self._touched = _Touched()
        self._unfound: set[TopicPartition] = set()
        self._deletions: dict[asyncio.Task[None], None] = {}
        self._deleting: dict[TopicPartition, asyncio.Task[None]] = {}
        self.offset = Offset(0)
        """Everything below is applied."""

    def begin_at(self, offset: Offset) -> None:
        """The image has everything below."""
        self.offset = offset
        self._broker.metadata_offset = offset - 1

    def enqueue(self, change: Change) -> None:
        """Have a change applied after those before it."""
        if self._has_given_up:
            change.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._queue.append(change)
        self._wake.set()

    async def run(self) -> None:
        """Apply what comes, until cancelled; `CannotFollowError` if a change cannot be applied."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                change = self._queue.popleft()
                try:
                    await self._apply(change.records)
                except Exception as error:
                    self._queue.appendleft(change)
                    self._give_up()
                    raise CannotFollowError(
                        f"metadata below offset {change.end_offset} cannot be applied: "
                        f"{type(error).__name__}: {error}"
                    ) from error
                self.begin_at(change.end_offset)
                self._applied(change.end_offset)
                change.answer()

    def _give_up(self) -> None:
        """Refuse what waits, and all that comes: this image is not the cluster's any more."""
        self.failures += 1
        self._has_given_up = True
        while self._queue:
            self._queue.popleft().refuse(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def stop(self) -> None:
        """Leave the rest of the deletions to the next start."""
        for task in list(self._deletions):
            task.cancel()
        await asyncio.gather(*self._deletions, return_exceptions=True)

    # At the start.

    async def reconcile(self, removed_ids: Container[bytes], *, is_complete: bool) -> None:
        """Make the logs found on the disk agree with the image; `removed_ids` are known deleted.

        Unless all log directories are there, what is not found may be in one that is not.
        """
        self._load_settings()
        await self._store.moves.resume(self._topic_id_of, is_complete=is_complete)
        deleted: list[TopicPartition] = []
        turns = Turns(self._store.environment.stopwatch)
        for partition in list(self._store):
            await turns.give_way()
            topic_id = self._store.place_of(partition).core.topic_ids.get(partition)
            wanted_id = self._topic_id_of(partition)
            if wanted_id is not None and topic_id == wanted_id:
                continue
            if wanted_id is not None and topic_id is None:
                self._set_topic_id(partition, wanted_id)
            elif topic_id is not None and topic_id in removed_ids:
                deleted.append(partition)
            else:
                await self._set_aside(partition)
        self._delete(deleted)
        if not is_complete:
            self._unfound = {
                partition
                for topic in self._broker.image.topics
                for index, declared in topic.partitions.items()
                if (partition := TopicPartition(topic.name, index)) not in self._store
                if self._may_be_elsewhere(partition, declared)
            }
        for topic in list(self._broker.image.topics):
            for index, declared in list(topic.partitions.items()):
                await self._follow(topic, index, declared)
                await turns.give_way()

    def _topic_id_of(self, partition: TopicPartition) -> TopicId | None:
        """Return the id of the topic, if this broker has a replica of the partition."""
        topic = self._broker.image.topics.find(partition.topic)
        declared = None if topic is None else topic.partitions.get(partition.partition)
        if topic is None or declared is None or self._broker.node_id not in declared.replicas:
            return None
        return topic.topic_id

    def _may_be_elsewhere(self, partition: TopicPartition, declared: Partition) -> bool:
        """Whether a log that was not found may be in a directory that could not be opened.

        Not if the controller knows that it is in one of the others, unless it was on its way there.
        """
        if self._broker.node_id not in declared.replicas:
            return False
        is_told = not is_reserved(self._directory_of(declared))
        return not is_told or any(partition in host.core.futures for host in self._store.hosts)

    def _set_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> None:
        host = self._store.place_of(partition)
        if partition in host.core.logs:
            with suppress(AppendError):
                host.guard(lambda: host.core.set_topic_id(partition, topic_id))

    async def _set_aside(self, partition: TopicPartition) -> None:
        logger.warning("%s is not in the cluster's metadata; it is set aside", partition)
        with suppress(AppendError):
            await self._store.set_aside(partition)

    # Changes.

    async def _apply(self, records: Sequence[Message]) -> None:
        image = self._broker.image
        turns = Turns(self._store.environment.stopwatch)
        for record in records:
            await self._look_at(record)
            await turns.give_way()
        # In one turn: no request sees a topic with some of its partitions.
        for record in records:
            image.replay(record)
            if isinstance(record, AbortTransactionRecord):
                self._undo()
        if len(records) >= LARGE:
            self._grown()
        if not image.is_in_transaction:
            touched, self._touched = self._touched, _Touched()
            await self._act(touched)

    async def _look_at(self, record: Message) -> None:
        touched = self._touched
        match record:
            case TopicRecord():
                touched.names[record.topic_id] = record.name
            case ConfigRecord():
                resource = Resource(record.resource_type, record.resource_name)
                touched.resources[resource] = None
                if resource.type == ResourceType.TOPIC and record.value is not None:
                    touched.configs.setdefault(resource.name, {})[record.name] = record.value
            case ClientQuotaRecord(remove=False):
                logger.warning("the quota %s is kept, and not enforced yet", record.key)
            case PartitionRecord():
                await self._declare(record)
            case PartitionChangeRecord():
                touched.partitions[record.topic_id, record.partition_id] = None
            case RemoveTopicRecord():
                topic = self._broker.image.topics.find_by_id(record.topic_id)
                if topic is not None:
                    touched.removed.append(topic)
            case _:
                pass

    def _undo(self) -> None:
        """Drop what was declared in a transaction that has ended without effect."""
        for partition in self._touched.declared:
            self._broker.replicas.remove(partition)
        self._delete([each for each in self._touched.declared if each in self._store])
        self._touched = _Touched()

    async def _declare(self, record: PartitionRecord) -> None:
        """Make a new partition's log and lead it; nobody can know of it yet."""
        name = self._touched.names.get(record.topic_id)
        if name is None:  # a topic that gets more partitions
            topic = self._broker.image.topics.find_by_id(record.topic_id)
            if topic is None:
                return
            name = topic.name
        self._touched.declared.append(TopicPartition(name, record.partition_id))
        new = Topic(name, TopicId(record.topic_id), {})
        await self._follow(new, record.partition_id, Partition.of_record(record))

    async def _act(self, touched: _Touched) -> None:
        topics = self._broker.image.topics
        self._flush()
        deleted: list[TopicPartition] = []
        for gone in touched.removed:
            for index in gone.partitions:
                partition = TopicPartition(gone.name, index)
                self._broker.replicas.remove(partition)
                self._unfound.discard(partition)
                if partition in self._store:
                    deleted.append(partition)
        self._delete(deleted)
        turns = Turns(self._store.environment.stopwatch)
        for topic_id, index in touched.partitions:
            if (topic := topics.find_by_id(topic_id)) is not None:
                await self._follow(topic, index, topic.partitions[index])
            await turns.give_way()
        if touched.removed or touched.declared:
            self._broker.coordinators.topics_changed(touched.removed)
        own = Resource(ResourceType.BROKER, str(self._broker.node_id))
        if ALL_BROKERS in touched.resources or own in touched.resources:
            self._load_settings()
            await self._configure(list(topics))
            return
        for resource in touched.resources:
            topic = topics.find(resource.name)
            if resource.type == ResourceType.TOPIC and topic is not None:
                await self._configure([topic])

    # Partitions.

    async def _follow(self, topic: Topic, index: int, declared: Partition) -> None:
        """Have a log for a partition of this broker, and lead it or not."""
        broker = self._broker
        if broker.node_id not in declared.replicas:
            return
        partition = TopicPartition(topic.name, index)
        try:
            log = await self._log_of(partition, topic.topic_id, self._directory_of(declared))
        except AppendError as error:
            self.failures += 1
            logger.error("%s is offline: %s", partition, error)
            broker.replicas.offline(partition, topic.topic_id)
            return
        self._tell_directory(partition, topic.topic_id, declared)
        self._flush()
        if declared.leader != broker.node_id:
            broker.replicas.remove(partition)
            return
        _, min_in_sync = self._config_of(topic.name)
        epoch = LeaderEpoch(declared.leader_epoch)
        broker.replicas.lead(
            partition,
            topic.topic_id,
            log,
            epoch,
            min_in_sync=min_in_sync,
            assigned=declared.replicas,
            in_sync=declared.isr,
        )
        self._store.changed(partition)

    def _tell_directory(
        self, partition: TopicPartition, topic_id: TopicId, declared: Partition
    ) -> None:
        """Tell the controller where a log is, if it knows otherwise; who moves it, does so."""
        found = self._store.place_of(partition).identity.directory_id
        if found and found != self._directory_of(declared) and partition not in self._store.moves:
            self._assignments.tell(topic_id, partition.partition, found)

    def _directory_of(self, declared: Partition) -> bytes:
        return declared.directories[declared.replicas.index(self._broker.node_id)]

    async def _log_of(
        self, partition: TopicPartition, topic_id: TopicId, directory_id: bytes
    ) -> PartitionLog:
        if (deletion := self._deleting.get(partition)) is not None:
            await asyncio.wait([deletion])
        if partition in self._store:
            found_id = self._store.place_of(partition).core.topic_ids.get(partition)
            if found_id not in (None, topic_id):
                raise PartitionOfflineError("files of a deleted topic with its name are there")
            return self._store.get(partition)
        online = {host.identity.directory_id for host in self._store.hosts if host.is_online}
        is_elsewhere = directory_id not in online and not is_reserved(directory_id)
        if is_elsewhere or partition in self._unfound:
            # Its records are there: an empty log here would be taken for all of them.
            raise PartitionOfflineError("its log directory is not there")
        config, _ = self._config_of(partition.topic)
        log = self._store.try_create(partition, topic_id, config, directory_id)
        return log or await self._store.create(partition, topic_id, config, directory_id)

    def _config_of(self, topic: str) -> tuple[LogConfig, int]:
        new = self._touched.configs.get(topic)
        if new is None:
            return self._topic_configs.of_topic(topic)
        return self._topic_configs.of(new)

    def _delete(self, partitions: list[TopicPartition]) -> None:
        """Remove logs in the background, a slice at a time."""
        if not partitions:
            return
        task = self._in_background(self._delete_slices(partitions))
        self._deleting |= dict.fromkeys(partitions, task)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._deletions[task] = None
        task.add_done_callback(self._deletions.__delitem__)
        return task

    async def _delete_slices(self, partitions: list[TopicPartition]) -> None:
        for start in range(0, len(partitions), DELETED_AT_ONCE_MAX):
            some = partitions[start : start + DELETED_AT_ONCE_MAX]
            left = await self._delete_logs(some)
            for partition in some:
                self._deleting.pop(partition, None)
            if left:
                logger.warning("there is no room to delete %d partitions yet", len(left))
                self._in_background(self._delete_later(left))

    async def _delete_logs(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Remove logs; return those that a full disk has kept."""
        self._flush()
        try:
            return await self._store.delete(*(p for p in partitions if p in self._store))
        except AppendError as error:
            logger.warning("deleting goes on at the next start: %s", error)
            return []

    async def _delete_later(self, partitions: list[TopicPartition]) -> None:
        """Remove logs when there is room. New ones of their names are offline until then."""
        while partitions:
            await asyncio.sleep(RETRY_SECONDS)
            left = await self._delete_logs(partitions)
            for partition in partitions:
                topic = self._broker.image.topics.find(partition.topic)
                declared = None if topic is None else topic.partitions.get(partition.partition)
                if topic is not None and declared is not None and partition not in left:
                    await self._follow(topic, partition.partition, declared)
            partitions = left

    # Settings.

    def _load_settings(self) -> None:
        """Take over what the image has set for brokers."""
        broker = self._broker
        layers = dynamic_layers(broker.layers.static, broker.image.configs, broker.node_id)
        try:
            settings = broker_settings(layers)
        except SettingError as error:
            # Kafka, or a later release of ours, may have let in what is not allowed here.
            logger.error("dynamic settings are passed over: %s", error)
            return
        broker.layers, broker.settings = layers, settings
        self._topic_configs.use(settings)
        self._settings_changed()

    async def _configure(self, topics: Iterable[Topic]) -> None:
        """Have the logs of topics go by their settings."""
        turns = Turns(self._store.environment.stopwatch)
        for topic in topics:
            config, min_in_sync = self._topic_configs.of_topic(topic.name)
            for index in topic.partitions:
                partition = TopicPartition(topic.name, index)
                replica = self._broker.replicas.get(partition)
                if replica is not None and replica.log is not None:
                    self._flush()
                    replica.log.config = config
                    self._broker.replicas.configure(partition, min_in_sync=min_in_sync)
                await turns.give_way()
