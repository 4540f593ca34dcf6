"""Records of a transaction: appended when its coordinator knows of the partition."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from moldau._native.frames import Frame, FrameSplitter, Produce, ProducePartition, parse_produce
from moldau._native.records import Batch, read_batches
from moldau.broker.append_request import AppendRequest, last_of_each
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.admission import is_admitted
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica
from moldau.transactions.commands import AddPartitions, VerifyPartitions
from moldau.transactions.transaction import BUMPING

ADDING_SINCE: Final = 12
_FLEXIBLE_SINCE: Final = 9
_SIZE_BYTES: Final = 4
PRODUCE: Final = 0

_SPLITTER: Final = FrameSplitter({PRODUCE: _FLEXIBLE_SINCE})


class TransactionalAppend(AppendRequest):
    """A Produce with a transactional id, which may have to wait for the id's coordinator.

    What comes behind one that waits, from the same producer, waits as well: the coordinator
    answers in the order in which it was asked.
    """

    __slots__ = ("_errors", "_lent", "_owned", "_transactional_id", "_was_asked")

    def __init__(self, broker: Broker, call: Call, produce: Produce) -> None:
        super().__init__(broker, call, produce)
        assert produce.transactional_id is not None
        self._transactional_id = produce.transactional_id
        self._errors: Mapping[TopicPartition, ErrorCode] = {}
        """Why the coordinator does not want records in a partition."""
        self._was_asked = False
        self._lent: memoryview | None = None
        """The request in the connection's buffer, while that stays as it is."""
        self._owned: bytearray | None = None
        """The request by itself, once it has to wait for the answer."""

    def begin(self, data: memoryview, frame: Frame) -> None:
        """Append, at once or when the coordinator has answered."""
        unknown: dict[TopicPartition, Batch] = {}
        producers = set()
        writes = self._broker.coordinators.transactions.writes
        for replica, batch in self._batches(data):
            producer = ProducerIdentity(
                ProducerId(batch.producer_id), ProducerEpoch(batch.producer_epoch)
            )
            producers.add(producer)
            if producer.id in writes or not is_admitted(replica, producer):
                unknown[replica.partition] = batch
        if len(producers) > 1:
            self._refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "more than one producer")
        elif not unknown or not self._is_verified:
            self.append(data)
            self.settle()
        else:
            self._ask(producers.pop(), unknown, data, frame)

    @property
    def _adds(self) -> bool:
        return self._call.version >= ADDING_SINCE

    @property
    def _is_verified(self) -> bool:
        return self._adds or self._broker.settings.transaction_partition_verification_enable

    def _partitions(self) -> Iterator[tuple[str | None, ProducePartition]]:
        """Return what is to be appended, with the topic's name; None: no topic has the id."""
        for topic in self._topics:
            name = topic.name
            if topic.topic_id is not None:
                known = self._broker.image.topics.find_by_id(topic.topic_id)
                name = None if known is None else known.name
            for partition in topic.partitions:
                yield name, partition

    def _batches(self, data: memoryview) -> Iterator[tuple[Replica, Batch]]:
        """Return what is in a transaction, as far as it can be appended at all."""
        for name, partition in self._partitions():
            replica = None if name is None else self._broker.replicas.get((name, partition.index))
            if replica is None or replica.log is None:
                continue
            try:
                batches = read_batches(data, partition.start, partition.end, check_crc=False)
            except ProtocolError:
                continue
            yield from (
                (replica, batch)
                for batch in batches[:1]
                if batch.is_transactional and batch.producer_id >= 0
            )

    def _ask(
        self,
        producer: ProducerIdentity,
        unknown: Mapping[TopicPartition, Batch],
        data: memoryview,
        frame: Frame,
    ) -> None:
        transactions = self._broker.coordinators.transactions
        for partition, batch in unknown.items():
            transactions.first_sequences.seen(partition, batch)
        self._was_asked = True
        command: AddPartitions | VerifyPartitions
        if self._adds:
            command = AddPartitions(
                self._transactional_id, producer, unknown.keys(), BUMPING, may_wait=True
            )
        else:
            command = VerifyPartitions(self._transactional_id, producer, unknown.keys())
        self._lent = data
        transactions.admit(
            command, lambda errors: self._call.attempt(partial(self._answered, errors))
        )
        if self._lent is not None:
            self._lent = None
            self._owned = _own(data, frame)

    def _answered(self, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        self._errors = errors
        if self._lent is not None:
            # At once: a coordinator that has recorded nothing new has nothing to wait for.
            data, self._lent = self._lent, None
            self.append(data)
            self.settle()
            return
        owned = self._owned
        assert owned is not None, "it waited"
        (frame,), _ = _SPLITTER.split(owned, 0, len(owned), frame_bytes_max=len(owned))
        self._topics = last_of_each(parse_produce(owned, frame).topics)
        self.append(memoryview(owned))
        self._broker.replicas.write_soon()
        self.settle()

    def _admit(self, replica: Replica, batch: Batch) -> None:
        """Refuse a batch that the coordinator does not want, or before which another is missing."""
        if batch.producer_id < 0:
            raise ReplicaError(ErrorCode.INVALID_RECORD, "a transactional batch has no producer id")
        assert replica.log is not None, "it leads"
        state = replica.log.producers.states.get(batch.producer_id)
        if state is not None and batch.producer_epoch < state.producer_epoch:
            # Here and not by the log, for the same answer as Kafka's.
            raise ReplicaError(ErrorCode.INVALID_PRODUCER_EPOCH, "a later epoch has been here")
        code = self._errors.get(replica.partition)
        if code is not None:
            code, message = self._seen(code)
            raise ReplicaError(code, message)
        if self._was_asked:
            first_sequences = self._broker.coordinators.transactions.first_sequences
            first_sequences.check(replica, batch, begins_at_zero=self._adds)

    def _seen(self, code: ErrorCode) -> tuple[ErrorCode, str]:
        told = told_code(ErrorReader.PRODUCE, code, self._call.version)
        if code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE):
            return told, "the partition was not added to the transaction"
        return told, f"the transaction's coordinator says {code.name}"

    def _refuse(self, code: ErrorCode, message: str) -> None:
        for name, partition in self._partitions():
            self._rows.append(self._error_row(name, partition, ReplicaError(code, message)))
        self.end()


def _own(data: memoryview, frame: Frame) -> bytearray:
    """Return a copy of a frame, its size included: the buffer is used again before the answer."""
    return bytearray(data[frame.start - _SIZE_BYTES : frame.end])
