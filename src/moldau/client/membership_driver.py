"""Does what a group's member wants: asks the coordinator, looks at topics and at the clock."""

import asyncio
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Coroutine
from typing import Any, Final

from moldau.client.assignors import parse_strategy
from moldau.client.classic_membership import ClassicMembership
from moldau.client.clock import ClientClock, loop_clock
from moldau.client.cluster import Backoff, Cluster, Topic
from moldau.client.connection import Connection
from moldau.client.consumer_membership import ConsumerMembership
from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.coordinator_lookup import LANE, CoordinatorLookup
from moldau.client.errors import ClientError, KafkaError
from moldau.client.membership import GroupMembership
from moldau.client.membership_events import (
    CallUser,
    CountsSeen,
    FailPoll,
    FindCoordinator,
    FindCounts,
    FindNames,
    Gone,
    MemberRules,
    MembershipEffect,
    MembershipEvent,
    MembershipTick,
    NamesSeen,
    RequestAnswered,
    RequestLost,
    SendRequest,
    TopicsSubscribed,
)
from moldau.kernel.errors import ProtocolError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.schema import Message

PARKED_LANE: Final = "group"
PARKED: Final = (JoinGroupRequest, SyncGroupRequest)
"""What the coordinator answers when the other members have come: others do not wait behind it."""
PARKED_MS_MORE: Final = 5_000
MANY_MEMBERS_SINCE: Final = 3

RESPONSES: Final[dict[type[Message], type[Message]]] = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
    ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
}


class MembershipDriver:
    """A member with a loop, a clock and connections."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        lookup: CoordinatorLookup,
        on_news: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._lookup = lookup
        self._on_news = on_news
        self._clock = loop_clock()
        self.member = _make_member(settings, self._clock)
        self.failure: ClientError | None = None
        """What he is to be told by an error."""
        self._pattern: re.Pattern[str] | None = None
        self._is_missing = False
        """Whether the group wants a topic that is not there."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._watching: asyncio.Task[None] | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    # What the user says.

    def subscribe(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        """Have the member want these topics, or those that a pattern fits, now and later."""
        self._pattern = None
        self.failure = None
        if pattern is None:
            self.tell(TopicsSubscribed(topics))
            self._start(self._meet(topics))
        elif self._settings.is_consumer_protocol:
            self.tell(TopicsSubscribed(frozenset(), pattern.pattern))
        else:
            self._pattern = pattern
            self._start(self._match())
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def tell(self, event: MembershipEvent) -> None:
        """Tell the member something, and do what it wants."""
        for effect in self.member.handle(event, self._clock.monotonic()):
            self._perform(effect)
        self._set_timer()

    async def wait_until_gone(self) -> None:
        """Wait until the coordinator knows that the member has left."""
        await self._gone.wait()
        self._gone.clear()
        if self._farewell is not None:
            await asyncio.wait([self._farewell])
            self._farewell = None
        self._stop()

    async def close(self) -> None:
        """Give up what is on its way."""
        tasks = list(self._tasks)
        self._stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self) -> None:
        self._pattern = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        for task in self._tasks:
            task.cancel()

    # What the member wants.

    def _perform(self, effect: MembershipEffect) -> None:
        match effect:
            case SendRequest(request):
                self._start(self._ask(request))
            case CallUser():
                self._on_news()
            case FindCounts(topics):
                self._start(self._count(topics))
            case FindNames(topic_ids):
                self._start(self._name(topic_ids))
            case FindCoordinator():
                self._lookup.forget(self._settings.group_id)
            case FailPoll(error):
                self.failure = error
                self._on_news()
            case Gone(farewell):
                if farewell is not None:
                    self._farewell = self._start(self._ask(farewell))
                self._gone.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.__delitem__)
        return task

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.member.next_time
        if due is not None:
            seconds = max(0.0, due - self._clock.monotonic())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self.tell, MembershipTick())

    async def _ask(self, request: Message) -> None:
        is_parked = isinstance(request, PARKED)
        timeout_ms = self._settings.request_timeout_ms
        if is_parked:
            parked_ms = self._settings.max_poll_interval_ms + PARKED_MS_MORE
            timeout_ms = max(timeout_ms, parked_ms)

        async def ask(connection: Connection) -> Message:
            sent = request
            version = connection.version_of(type(request))
            if isinstance(request, LeaveGroupRequest) and version < MANY_MEMBERS_SINCE:
                member_id = request.members[0].member_id
                sent = LeaveGroupRequest(group_id=request.group_id, member_id=member_id)
            response = RESPONSES[type(request)]
            return await connection.call(sent, response, version, timeout_ms=timeout_ms)

        group_id = self._settings.group_id
        try:
            lane = PARKED_LANE if is_parked else LANE
            answer = await self._lookup.attempt(group_id, ask, lane)
        except ClientError as error:
            self.tell(RequestLost(request, error))
        except ProtocolError as error:
            # The broker's version of the request has no field for what was to be said.
            code = ErrorCode.UNSUPPORTED_VERSION
            self.tell(RequestLost(request, KafkaError(code, f"group {group_id}", str(error))))
        else:
            self.tell(RequestAnswered(request, answer))

    # What the cluster has.

    async def _topics(self, names: frozenset[str] | None) -> dict[str, Topic]:
        """Ask for topics until somebody answers; those that are not there are left out."""
        backoff = Backoff(self._settings)
        wanted = None if names is None else sorted(names)
        may_create = wanted is not None and self._settings.allow_auto_create_topics
        while True:
            try:
                found = await self._cluster.ask_topics(wanted, may_create=may_create)
                return {name: each for name, each in found.items() if isinstance(each, Topic)}
            except ClientError:
                await asyncio.sleep(backoff.next_seconds())

    async def _meet(self, topics: frozenset[str]) -> None:
        """Ask for topics, which creates them where that is allowed."""
        await self._topics(topics)

    async def _count(self, topics: frozenset[str]) -> None:
        found = await self._topics(topics)
        counts = {name: len(topic.partitions) for name, topic in found.items()}
        self._is_missing = len(counts) < len(topics)
        self.tell(CountsSeen(topics, counts))

    async def _name(self, topic_ids: frozenset[bytes]) -> None:
        subscription = self.member.subscription
        names = None
        if subscription is not None and subscription.regex is None:
            names = subscription.topics
        found = await self._topics(names)
        known = {each.topic_id: name for name, each in found.items() if each.topic_id in topic_ids}
        if len(known) < len(topic_ids):
            # This broker has not heard of it yet, or it is gone already.
            await asyncio.sleep(self._settings.retry_backoff_max_ms / 1000)
        self.tell(NamesSeen(known))

    async def _match(self) -> None:
        pattern = self._pattern
        found = await self._topics(None)
        if pattern is not None and pattern is self._pattern:
            names = (name for name, topic in found.items() if not topic.is_internal)
            self.tell(
                TopicsSubscribed(frozenset(name for name in names if pattern.fullmatch(name)))
            )

    async def _watch(self) -> None:
        """Look from time to time if topics have come, gone or grown; for missing ones often."""
        age = self._settings.metadata_max_age_ms / 1000
        looked_at = self._clock.monotonic()
        while True:
            await asyncio.sleep(min(age, self._settings.retry_backoff_max_ms / 1000))
            if not self._is_missing and self._clock.monotonic() < looked_at + age:
                continue
            looked_at = self._clock.monotonic()
            if self._pattern is not None:
                await self._match()
            if isinstance(self.member, ClassicMembership) and self.member.watched:
                await self._count(self.member.watched)


def _make_member(settings: ConsumerSettings, clock: ClientClock) -> GroupMembership:
    rules = MemberRules(
        group_id=settings.group_id,
        instance_id=settings.group_instance_id or None,
        rack=settings.client_rack or None,
        session_timeout=settings.session_timeout_ms / 1000,
        heartbeat_interval=settings.heartbeat_interval_ms / 1000,
        poll_interval_max=settings.max_poll_interval_ms / 1000,
        backoff=settings.retry_backoff_ms / 1000,
        backoff_max=settings.retry_backoff_max_ms / 1000,
        assignors=parse_strategy(settings.partition_assignment_strategy),
        remote_assignor=settings.group_remote_assignor or None,
    )
    if settings.is_consumer_protocol:
        member_id = urlsafe_b64encode(clock.unique_id().bytes).rstrip(b"=").decode()
        return ConsumerMembership(rules, clock.chance.random, member_id)
    return ClassicMembership(rules, clock.chance.random)
