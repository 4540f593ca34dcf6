"""50 members come and go in a group with 100 partitions: no double owner, none lost, it settles."""

import asyncio
import os
import random
import time
from threading import Event, Thread
from typing import Any

import confluent_kafka
import pytest

from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.conformance.brokers import RunningBroker
from tests.conformance.churning import ClassicMember, NewMember, Small, Watch
from tests.wire import Wire

SECONDS = float(os.environ.get("MOLDAU_CHURN_SECONDS", "8"))
SETTLE_SECONDS_MAX = 90
MEMBERS, PARTITIONS = 50, 100


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


class Real(Thread):
    """A member on librdkafka, which comes once and stays."""

    def __init__(self, watch: Watch, broker: RunningBroker, topic: str, config: Any) -> None:
        super().__init__()
        self.watch = watch
        self.ended = Event()
        self.consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "log_level": 2}
            | {"enable.auto.commit": False, **config}
        )
        self.consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, _: object, places: list[confluent_kafka.TopicPartition]) -> None:
        self.watch.take(self, [place.partition for place in places])

    def _revoked(self, _: object, places: list[confluent_kafka.TopicPartition]) -> None:
        self.watch.give(self, [place.partition for place in places])

    def run(self) -> None:
        while not self.ended.is_set():
            self.consumer.poll(0.1)
        self.watch.give(self, self.watch.owned(self))
        self.consumer.close()


class Churn:
    """Lets small members come, go and die, and checks that the group settles then."""

    def __init__(
        self,
        watch: Watch,
        broker: RunningBroker,
        topic: MetadataResponseTopic,
        kind: type[Small],
    ) -> None:
        self.watch = watch
        self.broker = broker
        self.topic = topic
        self.kind = kind
        self.chance = random.Random(7)
        self.members: dict[Small, asyncio.Task[None]] = {}
        self.count = 0

    def come(self) -> None:
        self.count += 1
        name, topic_id = self.topic.name or "", self.topic.topic_id
        member = self.kind(self.watch, name, topic_id, PARTITIONS, f"small-{self.count}")
        task = asyncio.create_task(member.run(self.broker.host, self.broker.port))
        self.members[member] = task

    async def go(self, member: Small, *, dies: bool) -> None:
        task = self.members.pop(member)
        if dies:
            task.cancel()
        else:
            member.is_leaving = True
        await asyncio.gather(task, return_exceptions=dies)

    async def run(self) -> None:
        for _ in range(MEMBERS // 2):
            self.come()
        ending: set[asyncio.Task[None]] = set()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(self.chance.uniform(0, 0.3))
            if len(self.members) < MEMBERS and self.chance.random() < 0.6:
                self.come()
            elif self.members:
                member = self.chance.choice(list(self.members))
                dies = self.chance.random() < 0.2
                ending.add(asyncio.create_task(self.go(member, dies=dies)))
        while len(self.members) < MEMBERS:
            self.come()
        await asyncio.gather(*ending)
        await self.settle()
        await asyncio.gather(*(self.go(member, dies=False) for member in list(self.members)))

    async def settle(self) -> None:
        """Wait until every partition has an owner, every member work, and nothing moves."""
        until = time.monotonic() + SETTLE_SECONDS_MAX
        quiet_since, assigned = time.monotonic(), self.watch.assigned
        while time.monotonic() - quiet_since < 2 or not self._is_settled():
            assert time.monotonic() < until, self.watch.owners
            assert not self.watch.violations, self.watch.violations
            failed = [task for task in self.members.values() if task.done()]
            assert not failed, [task.exception() for task in failed]
            await asyncio.sleep(0.1)
            if self.watch.assigned != assigned:
                quiet_since, assigned = time.monotonic(), self.watch.assigned

    def _is_settled(self) -> bool:
        return self.watch.owners.keys() == set(range(PARTITIONS)) and all(
            self.watch.owned(member) for member in self.members
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        pytest.param(
            ClassicMember,
            {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300},
            id="classic",
        ),
        pytest.param(NewMember, {"group.protocol": "consumer"}, id="consumer"),
    ],
)
def test_members_come_and_go(
    broker: RunningBroker, wire: Wire, kind: type[Small], config: dict[str, Any]
) -> None:
    topic = f"churn-{kind.__name__}"
    wire.create_topic(topic, PARTITIONS)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    [described] = wire.call(request, MetadataResponse, 12).topics
    watch = Watch()
    real = [Real(watch, broker, topic, config) for _ in range(3)]
    for thread in real:
        thread.start()
    try:
        asyncio.run(Churn(watch, broker, described, kind).run())
    finally:
        for thread in real:
            thread.ended.set()
            thread.join()
    assert not watch.violations
    assert watch.assigned > PARTITIONS
