"""A history of sends and reads, as clients saw them, and the laws that it obeys.

A client notes an operation when it begins and again when it ends: with success, with a failure
that is known to have had no effect, or unknown. Values are unique, so each tells which send wrote
it. Laws are checked as soon as an operation shows them broken; `check_reads` looks at what only
all operations together can show, and `check_end` at what a last read of everything has to show.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.violation import LawViolation


class OperationEnd(Enum):
    """How an operation ended, as far as its client knows."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class TransactionNote:
    """A transaction of one producer."""

    writer: str
    sends: list["SendNote"] = field(default_factory=list)
    outcome: OperationEnd = OperationEnd.PENDING
    """OK once it is committed, FAILED once it is aborted."""
    is_ending: bool = False
    """Whether the producer has asked to commit."""
    seen: str = ""
    """How a reader of committed records has seen it, if one has."""


@dataclass(slots=True, eq=False)
class SendNote:
    """A record that a producer sent."""

    writer: str
    partition: TopicPartition
    value: bytes
    is_idempotent: bool
    transaction: TransactionNote | None = None
    outcome: OperationEnd = OperationEnd.PENDING
    offset: int = -1
    """Where it is, once a client knows."""

    def __str__(self) -> str:
        return f"{self.value!r} of {self.writer} in {self.partition}"


class ReaderNote:
    """One consumer's way through partitions, each read from a position on."""

    def __init__(self, history: "History", name: str, *, is_committed: bool) -> None:
        self._history = history
        self.name = name
        self.is_committed = is_committed
        """Whether it reads only what is committed."""
        self.stretches: list[Stretch] = []
        self._now: dict[TopicPartition, Stretch] = {}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset on."""
        stretch = Stretch(partition, offset)
        self._now[partition] = stretch
        self.stretches.append(stretch)

    def leave(self, partition: TopicPartition) -> None:
        """Read a partition no more."""
        self._now.pop(partition, None)

    def polled(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Note a record."""
        stretch = self._now.get(partition)
        if stretch is None:
            raise LawViolation("unasked poll", f"{self.name} got {value!r} of {partition}")
        if offset < stretch.end:
            raise LawViolation(
                "non-monotonic poll",
                f"{self.name} got {partition} at {offset}, having read to {stretch.end}",
            )
        stretch.offsets.append(offset)
        stretch.end = offset + 1
        self._history.note_poll(self, partition, offset, value)


@dataclass(slots=True)
class Stretch:
    """Records of one partition that one reader read without a seek between them."""

    partition: TopicPartition
    start: int
    end: int = 0
    offsets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end = self.start

    def has(self, offset: int) -> bool:
        """Whether the record at an offset was read."""
        place = bisect_left(self.offsets, offset)
        return place < len(self.offsets) and self.offsets[place] == offset


class History:
    """Everything that clients sent and read."""

    def __init__(self) -> None:
        self.sends: dict[bytes, SendNote] = {}
        self.transactions: list[TransactionNote] = []
        self.readers: list[ReaderNote] = []
        self.acknowledged = 0
        """How many sends ended with success."""
        self._records: dict[TopicPartition, dict[int, bytes]] = {}
        self._starts: dict[TopicPartition, int] = {}

    # What clients do.

    def begin_transaction(self, writer: str) -> TransactionNote:
        """Note a transaction; its producer notes the end by `end_transaction`."""
        transaction = TransactionNote(writer)
        self.transactions.append(transaction)
        return transaction

    def end_transaction(self, transaction: TransactionNote, outcome: OperationEnd) -> None:
        """Note how a transaction ended: OK is committed, FAILED is aborted."""
        assert transaction.outcome is OperationEnd.PENDING, "a transaction ends once"
        transaction.outcome = outcome
        if outcome is OperationEnd.FAILED and transaction.seen:
            raise LawViolation("aborted read", f"{transaction.seen}, and was aborted")

    def begin_send(
        self,
        writer: str,
        partition: TopicPartition,
        value: bytes,
        *,
        is_idempotent: bool,
        transaction: TransactionNote | None = None,
    ) -> SendNote:
        """Note a send before it leaves."""
        assert value not in self.sends, "values are unique"
        send = SendNote(writer, partition, value, is_idempotent, transaction)
        self.sends[value] = send
        if transaction is not None:
            transaction.sends.append(send)
        return send

    def end_send(self, send: SendNote, outcome: OperationEnd, offset: int = -1) -> None:
        """Note how a send ended; `offset` is where it is, -1 if the broker did not say."""
        assert send.outcome is OperationEnd.PENDING, "a send ends once"
        send.outcome = outcome
        if outcome is OperationEnd.OK:
            self.acknowledged += 1
            if offset >= 0:
                self._place(send.partition, offset, send.value)
        elif outcome is OperationEnd.FAILED and send.offset >= 0:
            raise LawViolation("phantom", f"{send} was refused, and is at {send.offset}")

    def reader(self, name: str, *, is_committed: bool) -> ReaderNote:
        """Return what a new consumer notes its reads in."""
        reader = ReaderNote(self, name, is_committed=is_committed)
        self.readers.append(reader)
        return reader

    def may_be_gone(self, partition: TopicPartition, before: int) -> None:
        """Note that records below an offset may be deleted; call it before they are."""
        self._starts[partition] = max(before, self._starts.get(partition, 0))

    def log_start(self, partition: TopicPartition) -> int:
        """Return the offset below which records may be deleted."""
        return self._starts.get(partition, 0)

    # Laws.

    def note_poll(
        self, reader: ReaderNote, partition: TopicPartition, offset: int, value: bytes
    ) -> None:
        """Note a record that was read."""
        self._place(partition, offset, value)
        send = self.sends[value]
        if send.outcome is OperationEnd.FAILED:
            raise LawViolation("phantom", f"{reader.name} read {send}, which was refused")
        transaction = send.transaction
        if transaction is None or not reader.is_committed:
            return
        seen = f"{reader.name} read {send} at {offset}"
        if transaction.outcome is OperationEnd.FAILED:
            raise LawViolation("aborted read", f"{seen}, which was aborted")
        if not transaction.is_ending:
            raise LawViolation("precommitted read", f"{seen}, whose commit has not begun")
        transaction.seen = transaction.seen or seen

    def _place(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Note where a record is."""
        known = self._records.setdefault(partition, {}).setdefault(offset, value)
        if known != value:
            raise LawViolation(
                "inconsistent offset", f"{partition} has {known!r} and {value!r} at {offset}"
            )
        send = self.sends.get(value)
        if send is None:
            raise LawViolation("invented", f"{partition} has {value!r}, which no client sent")
        if send.partition != partition:
            raise LawViolation("misplaced", f"{send} is in {partition} at {offset}")
        if send.offset < 0:
            send.offset = offset
        elif send.offset != offset and send.is_idempotent:
            raise LawViolation("duplicate", f"{send} is at {send.offset} and at {offset}")

    def check_reads(self) -> None:
        """Check that no reader passed over a record that it had to see."""
        for reader in self.readers:
            for stretch in reader.stretches:
                for offset, value in self._between(stretch):
                    send = self.sends[value]
                    if self._must_be_seen(send, reader) and not stretch.has(offset):
                        raise LawViolation(
                            "poll skip",
                            f"{reader.name} read {stretch.partition} from {stretch.start} to"
                            f" {stretch.end} without {send} at {offset}",
                        )

    def _between(self, stretch: Stretch) -> Iterator[tuple[int, bytes]]:
        records = self._records.get(stretch.partition, {})
        first = max(stretch.start, self.log_start(stretch.partition))
        if stretch.end - first > len(records):
            yield from (each for each in records.items() if first <= each[0] < stretch.end)
            return
        for offset in range(first, stretch.end):
            if (value := records.get(offset)) is not None:
                yield offset, value

    def _must_be_seen(self, send: SendNote, reader: ReaderNote) -> bool:
        if send.transaction is None or not reader.is_committed:
            return True
        return send.transaction.outcome is OperationEnd.OK

    def check_end(self, found: Mapping[TopicPartition, Iterable[tuple[int, bytes]]]) -> None:
        """Check a last read of all that is committed, from the start of each partition.

        Partitions that are not in `found` were deleted.
        """
        there: set[bytes] = set()
        for partition, records in found.items():
            last = -1
            for offset, value in records:
                if offset <= last:
                    raise LawViolation("non-monotonic poll", f"{partition} at {offset}")
                last = offset
                self._place(partition, offset, value)
                there.add(value)
        for send in self.sends.values():
            if send.partition in found:
                self._check_kept(send, is_there=send.value in there)
        for transaction in self.transactions:
            self._check_whole(transaction, found.keys(), there)
        self._check_order()

    def _check_order(self) -> None:
        """Check that what a producer was told is stored is there in the order of its sends."""
        last: dict[tuple[str, TopicPartition], SendNote] = {}
        for send in self.sends.values():
            if send.outcome is OperationEnd.OK and send.is_idempotent and send.offset >= 0:
                before = last.get((send.writer, send.partition))
                if before is not None and before.offset > send.offset:
                    raise LawViolation(
                        "order",
                        f"{before} is at {before.offset}, and {send}, sent later, at {send.offset}",
                    )
                last[send.writer, send.partition] = send

    def _check_kept(self, send: SendNote, *, is_there: bool) -> None:
        transaction = send.transaction
        if is_there:
            if send.outcome is OperationEnd.FAILED:
                raise LawViolation("phantom", f"{send} was refused, and is there")
            if transaction is not None and transaction.outcome is OperationEnd.FAILED:
                raise LawViolation("aborted read", f"{send} was aborted, and is there")
        elif (
            send.outcome is OperationEnd.OK
            and not 0 <= send.offset < self.log_start(send.partition)
            and (transaction is None or transaction.outcome is OperationEnd.OK)
        ):
            raise LawViolation("lost write", f"{send} was acknowledged at {send.offset}")

    def _check_whole(
        self, transaction: TransactionNote, partitions: Iterable[TopicPartition], there: set[bytes]
    ) -> None:
        """Check that a transaction is visible in whole or not at all."""
        kept = set(partitions)
        sends = [
            send
            for send in transaction.sends
            if send.outcome is OperationEnd.OK
            and send.partition in kept
            and not 0 <= send.offset < self.log_start(send.partition)
        ]
        seen = [send for send in sends if send.value in there]
        if seen and len(seen) < len(sends):
            missing = next(send for send in sends if send.value not in there)
            raise LawViolation("torn transaction", f"{seen[0]} is there, {missing} is not")
