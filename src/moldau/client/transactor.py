"""Does what transactions want: asks coordinators, drains the outbox, tells who waits."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from moldau.client.clock import loop_clock
from moldau.client.cluster import Cluster
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.errors import (
    ClientError,
    KafkaError,
    RequestTimeoutError,
    TransactionError,
)
from moldau.client.outbox_events import Abandoned, Enlisted, OutboxEvent, Renewed
from moldau.client.producer_settings import ProducerSettings
from moldau.client.transaction import TransactionRules, Transactions, TxnState
from moldau.client.transaction_events import (
    Admit,
    AskCoordinator,
    AskOffsets,
    Begin,
    CoordinatorQuestion,
    Drain,
    Drained,
    End,
    Initialize,
    NotReplied,
    Refused,
    Renew,
    Replied,
    Settle,
    TransactionEffect,
    TransactionEvent,
    TransactionOperation,
    TransactionTick,
)
from moldau.client.transaction_requests import FEATURE, IMPLICIT_SINCE, ask
from moldau.protocol.errors import ErrorCode

PRODUCE_VERSION_MAX: Final = 1 << 15
PRODUCE_VERSION_BEFORE: Final = 11
"""The last version of Produce by which no partition gets into a transaction."""
WRONG_BROKER: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Transactor:
    """A producer's way through its transactions; everything here happens in its loop."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        *,
        tell_outbox: Callable[[OutboxEvent], None],
        flush: Callable[[], Awaitable[None]],
        pause: Callable[[bool], None],
        run: Callable[..., object],
    ) -> None:
        assert settings.transactional_id is not None
        self._cluster = cluster
        self._settings = settings
        self._transactional_id = settings.transactional_id
        self._tell_outbox = tell_outbox
        self._flush = flush
        self._pause = pause
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._clock = loop_clock()
        self._lookup = CoordinatorLookup(cluster, CoordinatorType.TRANSACTION)
        self._group_lookup = CoordinatorLookup(cluster, CoordinatorType.GROUP)
        # What was called and is not known to have ended: who gave up waiting can wait again.
        self._calls: dict[TransactionOperation, tuple[TransactionEvent, asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        rules = TransactionRules(
            transactional_id=settings.transactional_id,
            is_two_phase=settings.transaction_two_phase_commit_enable,
            backoff=settings.retry_backoff_ms / 1000,
            backoff_max=settings.retry_backoff_max_ms / 1000,
        )
        self.transactions = Transactions(rules, chance=self._clock.chance.random)

    @property
    def produce_version(self) -> int:
        """The newest version of Produce that fits the protocol that is spoken."""
        return PRODUCE_VERSION_MAX if self.transactions.is_v2 else PRODUCE_VERSION_BEFORE

    # What users call.

    async def initialize(self, *, keep_prepared: bool) -> None:
        """Get an identity, which fences older producers and ends what they left open."""

        async def is_v2() -> bool:
            features = (await self._cluster.connect_any()).features
            return features.get(FEATURE, 0) >= IMPLICIT_SINCE

        limit_ms = self._settings.max_block_ms
        implicit = await self._cluster.retry(is_v2, "features", timeout_ms=limit_ms)
        await self.call(TransactionOperation.INITIALIZE, Initialize(implicit, keep_prepared))

    def begin(self) -> None:
        """Begin a transaction; nobody else is asked."""
        self._handle(Begin())
        self._calls.clear()

    async def call(self, operation: TransactionOperation, event: TransactionEvent) -> None:
        """Have something done, and wait for it for `max.block.ms`; it goes on behind that.

        Who calls the same again then waits for the same.
        """
        known = self._calls.get(operation)
        if known is None or known[0] != event:
            if self.transactions.is_pending(operation):
                raise self.transactions.refusal(f"{operation.value}()")
            known = event, self._loop.create_future()
            before = self._calls.get(operation)
            self._calls[operation] = known
            try:
                self._handle(event)
            except TransactionError:
                del self._calls[operation]
                if before is not None:
                    self._calls[operation] = before
                raise
        limit_ms = self._settings.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await asyncio.wait([known[1]])
        except TimeoutError:
            why = self.transactions.last_error
            raise RequestTimeoutError(
                f"{operation.value}() is not done after max.block.ms={limit_ms}, and goes on: call "
                "it again to wait for its end" + (f" ({why})" if why else "")
            ) from None
        if self._calls.get(operation) is known:
            del self._calls[operation]
        known[1].result()

    async def leave(self) -> None:
        """End what is being ended, and abort what is open: whoever closes has not committed it."""
        for operation, event in (
            (TransactionOperation.COMMIT, End(is_commit=True)),
            (TransactionOperation.ABORT, End(is_commit=False)),
        ):
            if self.transactions.is_pending(operation):
                with suppress(ClientError):
                    await self.call(operation, event)
        if self.transactions.state in (TxnState.OPEN, TxnState.FAILED):
            with suppress(ClientError):  # if it fails, the coordinator aborts it after its timeout
                await self.call(TransactionOperation.ABORT, End(is_commit=False))

    def stop(self, error: ClientError) -> None:
        """Look at the clock no more, and let go who waits."""
        if self._timer is not None:
            self._timer.cancel()
        for _, future in self._calls.values():
            _end(future, error)

    # The machine.

    def tell(self, event: TransactionEvent) -> None:
        """Hand over what has happened, in this turn of the loop but not inside of the outbox's."""
        self._loop.call_soon(self._handle, event)

    def _handle(self, event: TransactionEvent) -> None:
        now = self._clock.monotonic()
        try:
            effects = self.transactions.handle(event, now)
        finally:
            self._pause(self.transactions.state is not TxnState.OPEN)
        for effect in effects:
            self._perform(effect)
        due = self.transactions.next_time
        if due is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(
                max(0.0, due - now), self._handle, TransactionTick()
            )

    def _perform(self, effect: TransactionEffect) -> None:
        match effect:
            case AskCoordinator(question):
                self._run(self._ask(question))
            case Admit(places):
                self._tell_outbox(Enlisted(places))
            case Drain():
                self._run(self._drain(effect))
            case Renew(identity):
                self._tell_outbox(Renewed(identity))
            case Settle(operation, error):
                known = self._calls.get(operation)
                if known is not None:
                    _end(known[1], error)

    async def _drain(self, drain: Drain) -> None:
        if drain.error is not None:
            self._tell_outbox(Abandoned(drain.error))
        await self._flush()
        self._handle(Drained(drain))

    async def _ask(self, question: CoordinatorQuestion) -> None:
        lookup, key = self._lookup, self._transactional_id
        if isinstance(question, AskOffsets):
            lookup, key = self._group_lookup, question.group.group_id
        event: TransactionEvent
        try:
            event = await lookup.attempt(
                key,
                lambda connection: ask(
                    connection, question, self._settings, is_v2=self.transactions.is_v2
                ),
            )
        except KafkaError as error:
            is_refused = error.code is ErrorCode.UNSUPPORTED_VERSION
            event = Refused(error) if is_refused else Replied([error.code])
        except ClientError as error:
            event = NotReplied(error)
        else:
            if WRONG_BROKER.intersection(event.codes):
                lookup.forget(key)
        self._handle(event)


def _end(future: "asyncio.Future[None]", error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # perhaps nobody waits any more
