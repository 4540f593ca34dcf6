"""Keeps a share group's member alive: heartbeats in the background, as often as the group wants."""

import asyncio
import base64
from collections.abc import Callable, Iterable
from contextlib import suppress

from moldau.client.clock import loop_clock
from moldau.client.cluster import Backoff, Cluster
from moldau.client.connection import Connection
from moldau.client.coordinator_lookup import CoordinatorLookup, CoordinatorType
from moldau.client.errors import ClientError, KafkaError
from moldau.client.share_member import Next, ShareMemberState
from moldau.client.share_settings import ShareSettings
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


class ShareMembership:
    """A member, and the task that speaks for it while there is a subscription."""

    def __init__(
        self, cluster: Cluster, settings: ShareSettings, tell: Callable[[], object]
    ) -> None:
        self._clock = loop_clock()
        member_id = base64.urlsafe_b64encode(self._clock.unique_id().bytes).decode().rstrip("=")
        self.member = ShareMemberState(settings.group_id, member_id, settings.client_rack)
        self.failure: ClientError | None = None
        """Why there are no more heartbeats; who has heard of it may subscribe again."""
        self._settings = settings
        self._lookup = CoordinatorLookup(cluster, CoordinatorType.GROUP)
        self._tell = tell
        self._polled_at = self._clock.monotonic()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, names: Iterable[str]) -> None:
        """Choose topics; the coordinator hears of it at once."""
        self.member.subscribe(names)
        self._news.set()

    def polled(self) -> None:
        """The user is there: begin, or go on."""
        self._polled_at = self._clock.monotonic()
        if not self.member.is_member:
            self._news.set()
        if self._task is None and self.failure is None and self.member.names:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def leave(self) -> None:
        """Stop, and tell the coordinator."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self.member.is_member:
            with suppress(ClientError):  # it is missed when its session ends
                await self._say(self.member.farewell())

    async def _run(self) -> None:
        backoff = Backoff(self._settings)
        while True:
            self._news.clear()
            idle_ms = (self._clock.monotonic() - self._polled_at) * 1000
            if idle_ms > self._settings.max_poll_interval_ms:
                await self._step_aside()
                continue
            try:
                answer = await self._say(self.member.heartbeat())
            except ClientError as error:
                if not await self._go_on_after(error, backoff):
                    return
                continue
            backoff = Backoff(self._settings)
            before = self.member.assignment
            self.member.answered(answer)
            if self.member.assignment != before:
                self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(answer.heartbeat_interval_ms / 1000):
                    await self._news.wait()

    async def _step_aside(self) -> None:
        """Leave the records to others until the user polls again."""
        with suppress(ClientError):
            await self._say(self.member.farewell())
        await self._news.wait()

    async def _go_on_after(self, error: ClientError, backoff: Backoff) -> bool:
        if isinstance(error, KafkaError):
            match self.member.refused(error.code):
                case Next.JOIN:
                    return True
                case Next.GIVE_UP:
                    self.member.leave()
                    self.failure = error
                    self._task = None
                    self._tell()
                    return False
                case Next.TRY_AGAIN:
                    pass
        await asyncio.sleep(backoff.next_seconds())
        return True

    async def _say(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        async def ask(connection: Connection) -> ShareGroupHeartbeatResponse:
            answer = await connection.call(request, ShareGroupHeartbeatResponse)
            if answer.error_code:
                what = f"share group {request.group_id}"
                raise KafkaError(answer.error_code, what, answer.error_message)
            return answer

        return await self._lookup.attempt(request.group_id, ask)
