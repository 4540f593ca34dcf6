"""A consumer's side of its group: what it wants, what it is told, what it commits."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from moldau.client.clock import loop_clock
from moldau.client.cluster import Cluster
from moldau.client.connection import Connection
from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.errors import ClientError, CommitFailedError, KafkaError
from moldau.client.group_metadata import GroupMetadata
from moldau.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from moldau.client.membership_driver import MembershipDriver
from moldau.client.membership_events import (
    AssignedPartitions,
    AssignmentChange,
    CallBegan,
    CalledBack,
    CallUser,
    CommitRefused,
    MemberSignature,
    PollBegan,
    PollEnded,
    Unsubscribed,
)
from moldau.client.positions import Positions
from moldau.client.user_thread import call_user
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

RebalanceListener = Callable[[AssignedPartitions], object]
"""Is told of partitions; it may be a coroutine function where the consumer is awaited."""
OffsetsToCommit = Mapping[TopicPartition, OffsetAndMetadata]

STALE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""Others read by now what this member has read: its commit would set them back."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Whom the user wants told."""

    on_assigned: RebalanceListener | None = None
    on_revoked: RebalanceListener | None = None
    on_lost: RebalanceListener | None = None
    """Without one, what is lost is told as revoked."""

    def of(self, change: AssignmentChange) -> RebalanceListener | None:
        """Return whom to tell of a change."""
        match change:
            case AssignmentChange.ASSIGNED:
                return self.on_assigned
            case AssignmentChange.REVOKED:
                return self.on_revoked
            case AssignmentChange.LOST:
                return self.on_lost or self.on_revoked


class ConsumerGroupClient:
    """The group of one consumer; it may be a member, or only keep its offsets there."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        positions: Positions,
        consumed: Callable[[], OffsetsToCommit],
        on_news: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._positions = positions
        self._consumed = consumed
        self._lookup = CoordinatorLookup(cluster, CoordinatorType.GROUP)
        self._driver = MembershipDriver(cluster, settings, self._lookup, on_news)
        self._monotonic = loop_clock().monotonic
        self._listeners = Listeners()
        self._calling = asyncio.Lock()
        self._committing: asyncio.Task[None] | None = None
        self._commit_at = 0.0
        self._is_telling = False
        self.is_subscribed = False

    # Membership.

    def subscribe(
        self, topics: frozenset[str], pattern: re.Pattern[str] | None, listeners: Listeners
    ) -> None:
        """Want topics, and have these listeners told."""
        self._listeners = listeners
        self.is_subscribed = True
        self._positions.are_shared = True
        self._driver.subscribe(topics, pattern)

    async def unsubscribe(self, give_back: Callable[[AssignedPartitions], None]) -> None:
        """Leave the group: partitions are given up, and the coordinator knows."""
        if not self.is_subscribed:
            return
        self._driver.tell(Unsubscribed())
        try:
            await self.serve(give_back)
        finally:
            self.is_subscribed = False
            self._positions.are_shared = False
            await self._driver.wait_until_gone()

    async def close(self, give_back: Callable[[AssignedPartitions], None]) -> None:
        """Commit, leave, and give up what is on its way; who cannot be reached is not waited for.

        It takes as long as one request may.
        """
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                    if not self.is_subscribed and self._is_auto_commit:
                        await self._commit_quietly(self._consumed())
                    await self.unsubscribe(give_back)
        finally:
            if self._committing is not None:
                self._committing.cancel()
                await asyncio.gather(self._committing, return_exceptions=True)
            await self._driver.close()

    def begin_poll(self) -> None:
        """The user has come for records: what he got before is done with."""
        if self._is_telling:
            raise RuntimeError("poll is called by a function that poll waits for")
        self._auto_commit()
        if self.is_subscribed:
            self._driver.tell(PollBegan())

    def end_poll(self) -> None:
        """The user goes away with what he got."""
        if self.is_subscribed:
            self._driver.tell(PollEnded())

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that are wanted."""
        subscription = self._driver.member.subscription
        return frozenset() if subscription is None else subscription.topics

    @property
    def has_call(self) -> bool:
        """Whether the user is to be told something before anything is handed out."""
        return self._driver.member.call is not None

    def take_failure(self) -> ClientError | None:
        """Return what the user is to be told by an error, once."""
        failure, self._driver.failure = self._driver.failure, None
        return failure

    async def serve(self, give_back: Callable[[AssignedPartitions], None]) -> None:
        """Begin and stop to read as the member wants, and tell the user.

        `give_back` takes back what was read ahead of partitions that are given up.
        """
        async with self._calling:
            while (call := self._driver.member.call) is not None:
                self._driver.tell(CallBegan())
                if call.change is not AssignmentChange.ASSIGNED:
                    give_back(call.partitions)
                try:
                    await self._change(call)
                except asyncio.CancelledError:
                    raise  # it is told again
                except BaseException:
                    self._finish(call)
                    raise
                self._finish(call)

    async def _change(self, call: CallUser) -> None:
        if call.change is AssignmentChange.ASSIGNED:
            here = [state.key for state in self._positions]
            self._positions.assign([*here, *sorted(call.partitions)], from_committed=True)
        elif call.change is AssignmentChange.REVOKED and self._is_auto_commit:
            await self._commit_quietly(self._consumed())
        listener = self._listeners.of(call.change)
        if listener is not None:
            self._is_telling = True
            try:
                await call_user(listener, call.partitions)
            finally:
                self._is_telling = False

    def _finish(self, call: CallUser) -> None:
        if call.change is not AssignmentChange.ASSIGNED:
            self._positions.assign(
                [state.key for state in self._positions if state.key not in call.partitions]
            )
        self._driver.tell(CalledBack())

    @property
    def identity(self) -> MemberSignature | None:
        """How this consumer signs its commits, None if it is no member."""
        return self._driver.member.identity

    @property
    def metadata(self) -> GroupMetadata:
        """Return how this consumer is known in its group."""
        group_id, instance_id = self._settings.group_id, self._settings.group_instance_id or None
        if not self.is_subscribed or self.identity is None:
            return GroupMetadata(group_id, group_instance_id=instance_id)
        return GroupMetadata(group_id, self.identity.epoch, self.identity.member_id, instance_id)

    # Offsets.

    @property
    def _is_auto_commit(self) -> bool:
        return self._settings.enable_auto_commit

    async def commit(self, offsets: OffsetsToCommit, timeout_ms: int | None = None) -> None:
        """Commit offsets, as a member if this is one; `CommitFailedError` if that is stale."""
        group_id, is_member = self._settings.group_id, self.is_subscribed

        async def ask(connection: Connection) -> None:
            sent = self.identity if is_member else None
            instance_id = self._settings.group_instance_id or None
            if is_member and sent is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id}")
            found = await commit_offsets(
                connection, group_id, offsets, sent, instance_id if is_member else None
            )
            for error in found.values():
                if error is not None:
                    if sent is not None:
                        self._driver.tell(CommitRefused(error, sent))
                    raise error

        def is_final(error: KafkaError) -> bool:
            # The epoch may have risen: the next heartbeat says so, or that this is no member.
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                return self.identity is None
            return not error.retriable

        if not offsets:
            return
        try:
            what = f"commit of group {group_id}"
            await self._lookup.call(group_id, ask, what, timeout_ms=timeout_ms, is_final=is_final)
        except KafkaError as error:
            if error.code in STALE:
                raise CommitFailedError(error.code, error.what) from error
            raise

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed of these partitions."""
        wanted = list(partitions)
        is_stable = self._settings.isolation_level == "read_committed"
        group_id = self._settings.group_id

        async def ask(connection: Connection) -> dict[TopicPartition, OffsetAndMetadata | None]:
            found = await fetch_offsets(connection, group_id, wanted, require_stable=is_stable)
            offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
            for key in wanted:
                each = found.get(key)
                if isinstance(each, KafkaError):
                    raise each
                offsets[key] = each
            return offsets

        what = f"offsets of group {group_id}"
        return await self._lookup.call(group_id, ask, what, timeout_ms=timeout_ms)

    def _auto_commit(self) -> None:
        monotonic = self._monotonic()
        if not self._is_auto_commit or self._committing is not None:
            return
        interval = self._settings.auto_commit_interval_ms / 1000
        if self._commit_at == 0:
            self._commit_at = monotonic + interval
        if monotonic < self._commit_at:
            return
        self._commit_at = monotonic + interval
        work = self._commit_by_itself(self._consumed())
        self._committing = asyncio.get_running_loop().create_task(work)

    async def _commit_by_itself(self, offsets: OffsetsToCommit) -> None:
        try:
            await self._commit_quietly(offsets)
        finally:
            self._committing = None

    async def _commit_quietly(self, offsets: OffsetsToCommit) -> None:
        """Commit what can be: what cannot is read again by whoever has the partition next."""
        if self._committing not in (None, asyncio.current_task()):
            await asyncio.wait([self._committing])
        with suppress(ClientError):
            await self.commit(offsets, self._settings.request_timeout_ms)
