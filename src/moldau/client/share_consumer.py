"""The share consumer, asynchronous and synchronous: records of a share group, one by one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from moldau._native.fetched import Record
from moldau.client.acknowledgements import Acknowledged, AcknowledgeType
from moldau.client.cluster import NO_LEADER, Cluster
from moldau.client.errors import (
    AcknowledgementError,
    ClientError,
    ClosedError,
    KafkaError,
    RequestTimeoutError,
)
from moldau.client.settings import load
from moldau.client.share_link import ShareLink, may_pass
from moldau.client.share_membership import ShareMembership
from moldau.client.share_session import SharePartitionKey
from moldau.client.share_settings import ShareSettings
from moldau.client.sync import Synchronous, doing, waiting
from moldau.kernel.ids import TopicPartition

__all__ = ["AcknowledgeType", "Acknowledged", "AsyncShareConsumer", "ShareConsumer"]

CLOSE_SECONDS: Final = 30.0
"""How long the end waits until the last acknowledgements are told."""

Acknowledgements = Mapping[TopicPartition, KafkaError | ClientError | None]
"""For each partition, why its acknowledgements were not taken; None where they were."""


class AsyncShareConsumer:
    """Reads a share group's records: each goes to one member, and again if that fails.

        async with AsyncShareConsumer("localhost:9092", group_id="mill") as consumer:
            consumer.subscribe("grain")
            async for record in consumer:
                print(record.value, record.delivery_count)

    Without more, the next poll accepts what the last one returned. With
    `share_acknowledgement_mode="explicit"` each record is acknowledged by its user; who takes
    longer than `acquisition_lock_timeout_ms` loses it to others.
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **settings: object,
    ) -> None:
        self.settings = load(ShareSettings, servers, config, settings)
        self._cluster = Cluster(self.settings)
        self._news = asyncio.Event()
        self._membership = ShareMembership(self._cluster, self.settings, self._news.set)
        self._links: dict[int, ShareLink] = {}
        self._busy: dict[int, asyncio.Task[None]] = {}  # a task for each broker that is asked
        self._locating: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[Record, ShareLink, int]] = deque()  # acquired, not handed out
        self._done: deque[Acknowledged] = deque()
        self._failures: deque[ClientError] = deque()
        self._callback: Callable[[Acknowledged], object] | None = None
        self._turn = 0
        self._is_closed = False

    async def start(self) -> None:
        """Find the cluster; `async with` does it."""
        await self._cluster.start()

    async def close(self) -> None:
        """Tell the last acknowledgements, let everything else go to others, and leave the group."""
        if self._is_closed:
            return
        self._is_closed = True
        self._news.set()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._stop_fetching()
                closed = await asyncio.gather(*(link.close() for link in self._links.values()))
                self._done.extend(each for acknowledged in closed for each in acknowledged)
                await self._membership.leave()
        except TimeoutError:
            pass  # locks and sessions end by themselves
        finally:
            await self._cluster.close()
        self._call_back()

    async def _stop_fetching(self) -> None:
        if self._locating is not None:
            self._locating.cancel()
            await asyncio.gather(self._locating, return_exceptions=True)
            self._locating = None
        tasks = list(self._busy.values())
        # They are waited for: what they still acquire goes to others when the session is closed.
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What to read.

    def subscribe(self, *names: str) -> None:
        """Read these topics, and no others."""
        if not all(isinstance(name, str) for name in names):
            raise TypeError("topics are named one after the other: subscribe('a', 'b')")
        self._membership.failure = None
        self._membership.subscribe(names)

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group; what is held goes to others."""
        self._membership.subscribe(())
        await self._stop_fetching()
        self._waiting.clear()
        for link in self._links.values():
            self._done.extend(await link.close())
        await self._membership.leave()

    @property
    def subscription(self) -> frozenset[str]:
        """Return the topics that are subscribed to."""
        return frozenset(self._membership.member.names)

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record is held before others may have it; None before the first records."""
        times = [link.lock_timeout_ms for link in self._links.values()]
        return min((each for each in times if each is not None), default=None)

    # Records.

    async def poll(self, timeout_ms: int | None = None) -> list[Record]:
        """Return records that were acquired, `max.poll.records` at most, when there are some.

        Without records, nothing is returned after the timeout; None waits as long as it takes.
        """
        return await self.take(self.settings.max_poll_records, timeout_ms)

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over records for ever; who asks for the next is done with the one before."""
        while True:
            for record in await self.take(1, None):
                yield record

    async def take(self, count: int, timeout_ms: int | None) -> list[Record]:
        """Return at most so many records; see `poll`."""
        self._settle_last()
        loop = asyncio.get_running_loop()
        deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        while True:
            self._require_ready()
            self._news.clear()
            self._membership.polled()
            records = self._hand_out(count)
            if records:
                return records
            self._fetch()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return []

    def _require_ready(self) -> None:
        if self._is_closed:
            raise ClosedError("the consumer is closed")
        if not self._membership.member.names:
            raise ValueError("this consumer reads nothing: subscribe to topics first")
        self._call_back()
        if self._membership.failure is not None:
            raise self._membership.failure
        if self._failures:
            raise self._failures.popleft()

    def _hand_out(self, count: int) -> list[Record]:
        records: list[Record] = []
        while self._waiting and len(records) < count:
            record, link, generation = self._waiting.popleft()
            held = link.held(TopicPartition(record.topic, record.partition))
            if held is not None and generation == link.generation:
                held.hand_out(record.offset)
                records.append(record)
        return records

    # Acknowledgements.

    def acknowledge(
        self, record: Record, kind: AcknowledgeType | str = AcknowledgeType.ACCEPT
    ) -> None:
        """Say what became of a record: accept, release, reject, or renew its lock.

        The next poll or commit tells the broker. A record that is renewed stays with its user, who
        acknowledges it again later.
        """
        if self.settings.share_acknowledgement_mode != "explicit":
            raise AcknowledgementError(
                "records are acknowledged by the next poll: set share.acknowledgement.mode=explicit"
            )
        said = AcknowledgeType[kind.upper()] if isinstance(kind, str) else kind
        partition = TopicPartition(record.topic, record.partition)
        refused: AcknowledgementError | None = None
        for link in self._links.values():
            held = link.held(partition)
            if held is None:
                continue
            try:
                held.say(record.offset, said)
            except AcknowledgementError as error:
                refused = error  # another broker may have led the partition then
            else:
                return
        raise AcknowledgementError(f"{partition}: {refused or 'nothing of it is held'}")

    async def commit(self, timeout_ms: int | None = None) -> Acknowledgements:
        """Tell the brokers what was acknowledged, and wait for their answers."""
        self._settle_last(may_be_unsaid=True)
        limit_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        said = [link.acknowledge() for link in self._links.values() if link.has_said]
        try:
            async with asyncio.timeout(limit_ms / 1000):
                answers = await asyncio.gather(*said)
        except TimeoutError:
            raise RequestTimeoutError(f"commit: no answer in {limit_ms} ms") from None
        results: dict[TopicPartition, ClientError | None] = {}
        for each in (each for acknowledged in answers for each in acknowledged):
            self._done.append(each)
            if isinstance(each.error, ClientError) or each.partition not in results:
                results[each.partition] = each.error  # type: ignore[assignment]
        self._call_back()
        return results

    def commit_async(self) -> None:
        """Tell the brokers what was acknowledged; the callback gets their answers."""
        self._settle_last(may_be_unsaid=True)
        self._send_acknowledgements()

    def set_acknowledgement_callback(
        self, callback: Callable[[Acknowledged], object] | None
    ) -> None:
        """Have something called in poll, commit and close with what became of acknowledgements."""
        self._callback = callback

    def _call_back(self) -> None:
        while self._done:
            done = self._done.popleft()
            if self._callback is not None and done.offsets:
                self._callback(done)

    def _settle_last(self, *, may_be_unsaid: bool = False) -> None:
        """Accept what the last poll returned, or have the user say what became of it."""
        if self.settings.share_acknowledgement_mode == "implicit":
            for link in self._links.values():
                link.accept_all()
        elif not may_be_unsaid and any(link.has_unsaid for link in self._links.values()):
            raise AcknowledgementError(
                "acknowledge() every record of the last poll before the next one"
            )

    # Behind the scenes.

    def _fetch(self) -> None:
        """Ask those for records that are not being asked."""
        routes = self._routes()
        nodes = sorted(routes)
        if self.settings.share_acquire_mode == "record_limit" and nodes:
            # Two that answer at once would bring more than was asked for.
            self._turn += not self._busy
            nodes = [] if self._busy else [nodes[self._turn % len(nodes)]]
        for node_id in nodes:
            if node_id not in self._busy:
                link = self._link(node_id)
                self._start(node_id, self._fetch_from(link, routes[node_id]))
        self._send_acknowledgements()

    def _send_acknowledgements(self) -> None:
        for link in self._links.values():
            if link.has_said and link.node_id not in self._busy:
                self._start(link.node_id, self._acknowledge_to(link))

    def _link(self, node_id: int) -> ShareLink:
        link = self._links.get(node_id)
        if link is None:
            member_id = self._membership.member.member_id
            link = ShareLink(self._cluster, self.settings, member_id, node_id)
            self._links[node_id] = link
        return link

    def _start(self, node_id: int, work: Coroutine[Any, Any, None]) -> None:
        self._busy[node_id] = asyncio.get_running_loop().create_task(work)

    async def _fetch_from(
        self, link: ShareLink, wanted: Mapping[SharePartitionKey, TopicPartition]
    ) -> None:
        try:
            fetched = await link.fetch(wanted)
            self._done.extend(fetched.acknowledged)
            self._waiting.extend((record, link, link.generation) for record in fetched.records)
            self._failures.extend(fetched.errors)
            if not fetched.is_fine:
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)
        finally:
            del self._busy[link.node_id]
            self._news.set()

    async def _acknowledge_to(self, link: ShareLink) -> None:
        try:
            self._done.extend(await link.acknowledge())
        finally:
            del self._busy[link.node_id]
            self._news.set()

    def _routes(self) -> dict[int, dict[SharePartitionKey, TopicPartition]]:
        """Return which broker to ask for which of the assigned partitions."""
        routes: dict[int, dict[SharePartitionKey, TopicPartition]] = {}
        assignment = self._membership.member.assignment
        missing: list[str] = []
        for name in self._membership.member.names if assignment else ():
            topic = self._cluster.find_topic(name)
            if topic is None:
                missing.append(name)
                continue
            for index in assignment.get(topic.topic_id, ()):
                if index < len(topic.partitions):
                    leader = topic.partitions[index].leader
                    if leader == NO_LEADER:
                        missing.append(name)
                        continue
                    key = topic.topic_id, index
                    routes.setdefault(leader, {})[key] = TopicPartition(name, index)
        if missing and self._locating is None:
            # By a task: polls may have less time than the answer takes.
            self._locating = asyncio.get_running_loop().create_task(
                self._locate(list(dict.fromkeys(missing)))
            )
        return routes

    def _is_led(self, name: str) -> bool:
        """Whether all partitions of a topic have leaders."""
        topic = self._cluster.find_topic(name)
        return topic is not None and all(each.leader != NO_LEADER for each in topic.partitions)

    async def _locate(self, names: Sequence[str]) -> None:
        try:
            try:
                await self._cluster.ask_topics(names)
            except ClientError as error:
                if not may_pass(error):
                    self._failures.append(error)
            if not all(map(self._is_led, names)):
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)
        finally:
            self._locating = None
            self._news.set()


class ShareConsumer(Synchronous[AsyncShareConsumer]):
    """Reads a share group's records, and waits for what it is asked for.

    with ShareConsumer("localhost:9092", group_id="mill") as consumer:
        consumer.subscribe("grain")
        for record in consumer:
            print(record.value, record.delivery_count)
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(AsyncShareConsumer(servers, config=config, **settings))

    subscribe = doing(AsyncShareConsumer.subscribe)
    unsubscribe = waiting(AsyncShareConsumer.unsubscribe)
    poll = waiting(AsyncShareConsumer.poll)
    acknowledge = doing(AsyncShareConsumer.acknowledge)
    commit = waiting(AsyncShareConsumer.commit)
    commit_async = doing(AsyncShareConsumer.commit_async)
    set_acknowledgement_callback = doing(AsyncShareConsumer.set_acknowledgement_callback)

    @property
    def subscription(self) -> frozenset[str]:
        """Return the topics that are subscribed to."""
        return self._client.subscription

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record is held before others may have it; None before the first records."""
        return self._client.acquisition_lock_timeout_ms

    def __iter__(self) -> Iterator[Record]:
        """Iterate over records for ever; who asks for the next is done with the one before."""
        while True:
            yield from self._run(self._client.take(1, None))
