"""Performs the steps of the sink's protocol, at a real cluster."""

import random
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from moldau.client.admin_transactions import TransactionDescription
from moldau.client.errors import ClientError, TransactionError
from moldau.client.transactional import PreparedTransaction
from moldau.pipelines.connector.kept_clients import kept_clients
from moldau.pipelines.connector.sink.decision_topic import DecisionTopic
from moldau.pipelines.connector.sink.errors import LedgerTakenError
from moldau.pipelines.connector.sink.ledger import Ledger, OpenTransaction, encode
from moldau.pipelines.connector.sink.names import PREFIX, ledger_id
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome, classify
from moldau.pipelines.connector.sink.settings import SinkSettings
from moldau.pipelines.connector.sink.steps import (
    Append,
    AreOpen,
    EndAll,
    Fence,
    FindAbandoned,
    FindOpen,
    OpenLedger,
    Pause,
    Program,
    ReadLedger,
    ReportStep,
    Result,
    Step,
    run,
)

if TYPE_CHECKING:
    from moldau.client.producer import Producer

ONGOING: Final = "Ongoing"
LEDGER_TIMEOUT_MS: Final = 10_000
"""How long a ledger's transaction may hold up readers of others in the same topic."""
LEDGER_BYTES_MAX: Final = 16 << 20
PAUSE_SECONDS: Final = 0.02
PAUSE_SECONDS_MAX: Final = 1.0


class LostJobWarning(RuntimeWarning):
    """A batch write of a driver that is gone is visible in part only."""


class SinkKafka:
    """A task's or the driver's way to the cluster."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._open = ExitStack()
        self.clients = self._open.enter_context(kept_clients(settings.client_config))
        self._admin = self.clients.admin
        self._topic = DecisionTopic(self.clients, settings.decision_topic)
        self._writers: dict[str, Producer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def run(self, program: Program[Result]) -> Result:
        """Perform a program of the protocol."""
        return run(program, self._perform)

    def _perform(self, step: Step[Any]) -> object:
        match step:
            case ReadLedger(key):
                return self._topic.read(key)
            case OpenLedger(key):
                return self._open_ledger(key)
            case Append(key, ledger):
                self._append(key, ledger)
            case FindAbandoned():
                return self._topic.find_abandoned()
            case ReportStep(words):
                warnings.warn(words, LostJobWarning, stacklevel=2)
            case Pause(attempt):
                limit = min(PAUSE_SECONDS * 2**attempt, PAUSE_SECONDS_MAX)
                time.sleep(random.uniform(0, limit))
            case _:
                return self._perform_on_transactions(step)
        return None

    def _perform_on_transactions(self, step: Step[Any]) -> object:
        match step:
            case AreOpen(transactions):
                return self._are_open(transactions)
            case EndAll(transactions, is_commit):
                return self._end_all(transactions, is_commit=is_commit)
            case FindOpen(key):
                found = self._admin.list_transactions(states=[ONGOING])
                ids = [each.transactional_id for each in found]
                return [each for each in ids if each.startswith(f"{PREFIX}-{key}-")]
            case Fence(transactional_ids):
                for answer in self._admin.fence_producers(transactional_ids).values():
                    if isinstance(answer, ClientError):
                        raise answer
                return None
            case _:
                raise AssertionError(step)

    # The ledger.

    def _open_ledger(self, key: str) -> Ledger:
        self._close_writer(key)
        self._topic.ensure()
        writer = self.clients.producer(
            self._settings.client_config,
            transactional_id=ledger_id(key),
            transaction_timeout_ms=LEDGER_TIMEOUT_MS,
            # A decision names each task's transaction: there may be thousands.
            compression_type="zstd",
            max_request_size=LEDGER_BYTES_MAX,
        )
        self._writers[key] = writer
        self._open.callback(self._close_writer, key)
        writer.init_transactions()
        return self._topic.read_all(key)

    def _append(self, key: str, ledger: Ledger | None) -> None:
        writer = self._writers[key]
        value = None if ledger is None else encode(ledger)
        try:
            with writer.transaction():
                writer.send(self._settings.decision_topic, value, key.encode(), partition=0)
        except TransactionError as error:
            raise LedgerTakenError(str(error)) from error

    def _close_writer(self, key: str) -> None:
        writer = self._writers.pop(key, None)
        if writer is not None:
            writer.close()

    # Transactions.

    def _are_open(self, transactions: Sequence[OpenTransaction]) -> bool:
        described = self._admin.describe_transactions(
            each.transactional_id for each in transactions
        )
        for each in transactions:
            found = described[each.transactional_id]
            if not isinstance(found, TransactionDescription):
                raise found
            if (found.state, found.producer_id, found.producer_epoch) != (ONGOING, *each[1:]):
                return False
        return True

    def _end_all(
        self, transactions: Sequence[OpenTransaction], *, is_commit: bool
    ) -> list[TransactionOutcome]:
        named = {
            each.transactional_id: PreparedTransaction(each.producer_id, each.epoch)
            for each in transactions
        }
        answers = self._admin.end_transactions(named, is_commit=is_commit)
        return [
            classify(answers[each.transactional_id], is_commit=is_commit) for each in transactions
        ]
