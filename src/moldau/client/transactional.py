"""The producer's methods for transactions, asynchronous and synchronous."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from moldau.client.background import BackgroundLoop
from moldau.client.errors import (
    ClientError,
    FatalTransactionError,
    TransactionStateError,
)
from moldau.client.group_metadata import GroupMetadata, StoredOffset, stored
from moldau.client.sender import Sender
from moldau.client.transaction_events import End, Prepare, SendOffsets, TransactionOperation
from moldau.client.transactor import Transactor
from moldau.kernel.ids import TopicPartition

TransactionOffsets = (
    Mapping[tuple[str, int], StoredOffset | int] | Mapping[TopicPartition, StoredOffset | int]
)
"""For each partition the offset of the next record to read."""


class PreparedTransaction(NamedTuple):
    """Names a prepared transaction, for whoever decides on its end."""

    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> "PreparedTransaction":
        """Read what `str` has made of one."""
        producer_id, _, epoch = text.partition(":")
        return cls(int(producer_id), int(epoch))


class AsyncTransactional:
    """Transactions: records and offsets that are all visible in the end, or not at all.

    async with AsyncProducer("localhost:9092", transactional_id="mill") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("flour", b"10 kg")
    """

    @abstractmethod
    def _get_sender(self) -> Sender: ...

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Take over the `transactional.id`, once, before the first transaction.

        Older producers with the same id are fenced, and what they left open is aborted; with
        `keep_prepared` what they have prepared stays, and waits for `complete_transaction`.
        """
        await self._transactor().initialize(keep_prepared=keep_prepared)

    async def begin_transaction(self) -> None:
        """Begin a transaction; what is sent from now on belongs to it."""
        self._transactor().begin()

    async def send_offsets(self, offsets: TransactionOffsets, group: GroupMetadata | str) -> None:
        """Commit a consumer's offsets with the transaction.

        With the consumer's metadata, a member that was fenced from its group cannot; with the
        group's name alone, that is not checked.
        """
        named = GroupMetadata(group) if isinstance(group, str) else group
        wanted = {TopicPartition(*key): stored(offset) for key, offset in offsets.items()}
        await self._transactor().call(TransactionOperation.SEND_OFFSETS, SendOffsets(named, wanted))

    async def commit_transaction(self) -> None:
        """Deliver what was sent, then make all of it visible."""
        await self._transactor().call(TransactionOperation.COMMIT, End(is_commit=True))

    async def abort_transaction(self) -> None:
        """Give up the transaction: nothing of it becomes visible."""
        await self._transactor().call(TransactionOperation.ABORT, End(is_commit=False))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin a transaction, and commit it at the end; an exception aborts it."""
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException as error:
            await self.abandon_transaction(error)
            raise

    async def abandon_transaction(self, error: BaseException) -> None:
        """Abort what an error has interrupted, if anything; the error says more than a second.

        Only that the producer is of no use any more is better news than why it was aborted.
        """
        if isinstance(error, FatalTransactionError):
            return
        try:
            await self.abort_transaction()
        except FatalTransactionError as fatal:
            if isinstance(error, ClientError):
                raise fatal from error
        except ClientError:
            pass

    # Two-phase commit (KIP-939).

    async def prepare_transaction(self) -> PreparedTransaction:
        """Deliver everything, so that only the decision is missing; return the name for it.

        After that the transaction can be committed or aborted, and nothing else.
        """
        transactor = self._transactor()
        await transactor.call(TransactionOperation.PREPARE, Prepare())
        return self._prepared()

    async def hand_over_transaction(self) -> PreparedTransaction:
        """Deliver everything, and leave the end to another process: `Admin.end_transactions`.

        As `prepare_transaction`, and for brokers without two-phase commit as well: there the
        transaction ends by itself after `transaction.timeout.ms`, aborted. It stays open when this
        producer is closed.
        """
        await self._transactor().call(TransactionOperation.PREPARE, Prepare(may_expire=True))
        return self._prepared()

    async def complete_transaction(self, decided: PreparedTransaction | None) -> None:
        """Commit the prepared transaction if it is the one that was decided for; else abort it."""
        if decided is not None and decided == self._prepared():
            await self.commit_transaction()
        else:
            await self.abort_transaction()

    @property
    def prepared_transaction(self) -> PreparedTransaction | None:
        """The transaction that is prepared, also by an earlier producer; None if there is none."""
        prepared = self._transactor().transactions.prepared
        return None if prepared is None else PreparedTransaction(*prepared)

    def _prepared(self) -> PreparedTransaction:
        prepared = self.prepared_transaction
        if prepared is None:
            raise TransactionStateError("no transaction is prepared: prepare_transaction() first")
        return prepared

    def _transactor(self) -> Transactor:
        transactor = self._get_sender().transactor
        if transactor is None:
            raise TransactionStateError("the producer has no transactions: set transactional.id")
        return transactor


class Transactional:
    """Transactions for the synchronous producer; see `AsyncTransactional`."""

    _background: BackgroundLoop

    @property
    @abstractmethod
    def _transactional(self) -> AsyncTransactional: ...

    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Take over the `transactional.id`, once; see `AsyncTransactional.init_transactions`."""
        self._background.run(self._transactional.init_transactions(keep_prepared=keep_prepared))

    def begin_transaction(self) -> None:
        """Begin a transaction; what is sent from now on belongs to it."""
        self._background.run(self._transactional.begin_transaction())

    def send_offsets(self, offsets: TransactionOffsets, group: GroupMetadata | str) -> None:
        """Commit a consumer's offsets with the transaction."""
        self._background.run(self._transactional.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Deliver what was sent, then make all of it visible."""
        self._background.run(self._transactional.commit_transaction())

    def abort_transaction(self) -> None:
        """Give up the transaction: nothing of it becomes visible."""
        self._background.run(self._transactional.abort_transaction())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction, and commit it at the end; an exception aborts it."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException as error:
            self._background.run(self._transactional.abandon_transaction(error))
            raise

    def prepare_transaction(self) -> PreparedTransaction:
        """Deliver everything, so that only the decision is missing; return the name for it."""
        return self._background.run(self._transactional.prepare_transaction())

    def hand_over_transaction(self) -> PreparedTransaction:
        """Deliver everything, and leave the end to another process: `Admin.end_transactions`."""
        return self._background.run(self._transactional.hand_over_transaction())

    def complete_transaction(self, decided: PreparedTransaction | None) -> None:
        """Commit the prepared transaction if it is the one that was decided for; else abort it."""
        self._background.run(self._transactional.complete_transaction(decided))

    @property
    def prepared_transaction(self) -> PreparedTransaction | None:
        """The transaction that is prepared, also by an earlier producer; None if there is none."""
        return self._transactional.prepared_transaction
