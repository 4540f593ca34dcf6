"""Records that a share group gives up, put into its dead letter topic (KIP-1191)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from moldau._native.records import Record, read_batches
from moldau.broker.ports import LoadedPieces, Piece
from moldau.controller.commands import CreateTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.errors import UNREADABLE, AppendError, OffsetOutOfRangeError
from moldau.log.extents import Isolation
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.settings.effective import topic_settings
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.records.batch import HEADER_BYTES, build_batch, read_records, validate
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica
from moldau.sharing.share_state import ShareKey
from moldau.sharing.states import StateBatch

if TYPE_CHECKING:
    from moldau.broker.broker_view import BrokerView
    from moldau.metadata.settings.kafka_resources import GroupSettings

READ_BYTES: Final = 256 << 10
RECORDS_MAX: Final = 500
"""How many dead letters are written at once."""

RECORD_OVERHEAD_MAX: Final = 32

REJECTED: Final = "Offset rejected by client."
DELIVERED_TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."


def _is_open(broker: "BrokerView", name: str) -> bool:
    """Return whether the topic is there, and lets itself be used for dead letters."""
    if broker.image.topics.find(name) is None:
        return False
    configs = broker.image.configs.of(Resource(ResourceType.TOPIC, name))
    return topic_settings(broker.settings, configs).errors_deadletterqueue_group_enable


def _creation(broker: "BrokerView", name: str) -> CreateTopics:
    topic = CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name="errors.deadletterqueue.group.enable", value="true")],
    )
    entropy = broker.environment.entropy(UUID_BYTES)
    return CreateTopics(CreateTopicsRequest(topics=[topic]), entropy)


class Burial:
    """Dead letters on their way; `then` is called when they are committed, or lost."""

    def __init__(
        self,
        broker: "BrokerView",
        key: ShareKey,
        source: Replica,
        settings: "GroupSettings",
        batch: StateBatch,
        then: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._key = key
        self._source = source
        self._batch = batch
        self._then = then
        self._position = batch.first
        self._is_copied = settings.errors_deadletterqueue_copy_record_enable
        self._topic = settings.errors_deadletterqueue_topic_name
        limit = settings.share_delivery_count_limit
        self._cause = DELIVERED_TOO_OFTEN if batch.delivery_count >= limit else REJECTED

    def begin(self) -> None:
        """Write the first of them, into a topic that may have to be made."""
        settings = self._broker.settings
        prefix = settings.errors_deadletterqueue_topic_name_prefix
        if not self._topic.startswith(prefix) or self._topic.startswith("__"):
            self._then()
        elif (
            settings.errors_deadletterqueue_auto_create_topics_enable
            and self._broker.image.topics.find(self._topic) is None
        ):
            command = _creation(self._broker, self._topic)
            self._broker.controller.submit(command, lambda _outcome: self.go_on())
        else:
            self.go_on()

    def go_on(self) -> None:
        """Write the next of them."""
        if self._position > self._batch.last or not _is_open(self._broker, self._topic):
            self._then()
        elif self._is_copied:
            self._read()
        else:
            last = min(self._batch.last, Offset(self._position + RECORDS_MAX - 1))
            letters = [self._letter(offset) for offset in range(self._position, last + 1)]
            self._position = Offset(last + 1)
            self._write(letters)

    # Copying.

    def _read(self) -> None:
        replica = self._source
        log = replica.log
        if log is None:
            self._then()
            return
        try:
            self._position = max(self._position, log.log_start)
            read = log.read(
                self._position, bytes_max=READ_BYTES, isolation=Isolation.HIGH_WATERMARK
            )
        except DiskColdError as cold:
            self._broker.logs.warm(replica.partition, cold, self.go_on)
            return
        except OffsetOutOfRangeError:
            self._then()
            return
        except UNREADABLE as error:
            self._broker.logs.failed(replica.partition, error)
            self._then()
            return
        if read.extent is None:
            self._then()
            return
        self._broker.logs.load([Piece(replica.partition, read.extent)], self._loaded)

    def _loaded(self, loaded: LoadedPieces) -> None:
        content = loaded.contents[0]
        letters = []
        if content is not None:
            for batch in read_batches(content, check_crc=False):
                first = self._position
                self._position = Offset(batch.last_offset + 1)
                letters += [
                    self._letter(record.offset, record)
                    for record in read_records(content, batch)
                    if not batch.is_control and first <= record.offset <= self._batch.last
                ]
        if loaded.release is not None:
            loaded.release()
        if content is None:
            self._then()
        else:
            self._write(letters)

    def _letter(self, offset: int, record: Record | None = None) -> Record:
        source = self._source.partition
        headers = [
            ("__dlq.errors.topic", source.topic),
            ("__dlq.errors.partition", str(source.partition)),
            ("__dlq.errors.offset", str(offset)),
            ("__dlq.errors.group", self._key.group_id),
            ("__dlq.errors.delivery.count", str(self._batch.delivery_count)),
            ("__dlq.errors.message", self._cause),
        ]
        return Record(
            0,
            self._broker.environment.now().wall_ms,
            None if record is None or record.key is None else bytes(record.key),
            None if record is None or record.value is None else bytes(record.value),
            [(name, value.encode()) for name, value in headers],
        )

    # Writing.

    def _write(self, letters: Sequence[Record]) -> None:
        try:
            replica = self._find_leader()
        except ReplicaError:
            self._then()
            return
        end: Offset | None = None
        for batch in _batches(letters, replica):
            try:
                # As a client's: the topic may want keys, which these records need not have.
                appended = replica.append(batch, validate(batch), self._broker.environment.now())
            except AppendError:
                # Too large with what is written beside it, or there is no room: it is given up.
                continue
            end = Offset(appended.last_offset + 1)
        if end is None:
            self._go_on_soon()
            return
        self._broker.replicas.write_soon()
        replica.wait_committed(end, self)

    def _find_leader(self) -> Replica:
        topic = self._broker.image.topics.find(self._topic)
        count = 1 if topic is None else len(topic.partitions)
        partition = TopicPartition(self._topic, self._key.partition % count)
        return self._broker.replicas.find_leader(partition)

    def committed(self, replica: Replica) -> None:  # noqa: ARG002 - it has one
        """Go on with the next."""
        self._go_on_soon()

    def lost(self, replica: Replica, error: ReplicaError) -> None:  # noqa: ARG002
        """Go on all the same: who could not be buried must not hold up the living."""
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        environment = self._broker.environment
        environment.at(environment.now().monotonic, self.go_on)


def _batches(letters: Sequence[Record], replica: Replica) -> Iterator[bytearray]:
    """Give batches that are as large as the topic lets them be."""
    log = replica.log
    assert log is not None, "it leads"
    room = log.config.max_message_bytes - HEADER_BYTES
    size = 0
    batch: list[Record] = []
    for letter in letters:
        more = RECORD_OVERHEAD_MAX + len(letter.key or b"") + len(letter.value or b"")
        more += sum(len(name) + len(value or b"") + 4 for name, value in letter.headers)
        if batch and size + more > room:
            yield _built(batch)
            size, batch = 0, []
        size += more
        batch.append(letter)
    if batch:
        yield _built(batch)


def _built(letters: Sequence[Record]) -> bytearray:
    return bytearray(
        build_batch(
            [
                Record(number, letter.timestamp, letter.key, letter.value, letter.headers)
                for number, letter in enumerate(letters)
            ]
        )
    )
