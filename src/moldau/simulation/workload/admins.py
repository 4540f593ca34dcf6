"""Admins: topics come, grow, change and go; what is told of them is what was last done."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import ClassVar, Final

from moldau.client.admin import AsyncAdmin
from moldau.client.descriptions import ConfigResource, ConfigSource, ListedOffset, ResourceType
from moldau.client.errors import KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.simulation.workload.client import QUICK, WorkloadClient
from moldau.simulation.workload.ledger import WorkloadLedger

PRUNED: Final = TopicPartition("pruned", 0)
CONFIG: Final = "retention.ms"
TOPICS_MAX: Final = 3
PARTITIONS_MAX: Final = 3
GONE: Final = 0
"""How many partitions a topic has that is not there."""


class AdminClient(WorkloadClient):
    """Administers topics of its own; a topic of which it does not know what became is left alone.

    Its writes follow each other: a read returns the last, or one of which it never knew the end.
    """

    kind: ClassVar[str] = "admin"

    def __init__(self, name: str, servers: str, ledger: WorkloadLedger, random: Random) -> None:
        super().__init__(name, servers, ledger, random)
        self._topics: dict[str, int] = {}
        """Those of which it knows that they are there, with their numbers of partitions."""
        self._past: list[str] = []

    async def work(self) -> None:
        """Do one thing after another."""
        async with AsyncAdmin(self._servers, config=QUICK) as admin:
            while not self.is_ending:
                await self._choose()(admin)
                self.acknowledge()
                await self.rest()

    def _choose(self) -> Callable[[AsyncAdmin], Awaitable[None]]:
        if not self._topics:
            return self.random.choice((self._create, self._prune))
        change = self._create if len(self._topics) < TOPICS_MAX else self._delete
        return self.random.choice((change, self._grow, self._alter, self._prune, self._look))

    def _pick(self) -> str:
        return self.random.choice(list(self._topics))

    async def _create(self, admin: AsyncAdmin) -> None:
        name, value = f"{self.name}-{len(self._past)}", self._config_value()
        count = self.random.randint(1, PARTITIONS_MAX)
        partitions, configs, now = self.ledger.partitions, self.ledger.configs, self.ledger.now
        self._past.append(name)
        made = partitions.begin_write(name, count, now)
        set_ = configs.begin_write((name, CONFIG), value, now)
        try:
            await admin.create_topic(name, count, configs={CONFIG: value})
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # by an attempt before
                raise
        partitions.end_write(name, made, self.ledger.now)
        configs.end_write((name, CONFIG), set_, self.ledger.now)
        self._topics[name] = count

    async def _grow(self, admin: AsyncAdmin) -> None:
        name = self._pick()
        count = self._topics.pop(name) + 1
        write = self.ledger.partitions.begin_write(name, count, self.ledger.now)
        try:
            await admin.create_partitions(name, count)
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_PARTITIONS:  # an attempt before made them
                raise
        self.ledger.partitions.end_write(name, write, self.ledger.now)
        self._topics[name] = count

    async def _alter(self, admin: AsyncAdmin) -> None:
        name = self._pick()
        count, value = self._topics.pop(name), self._config_value()
        write = self.ledger.configs.begin_write((name, CONFIG), value, self.ledger.now)
        await admin.alter_configs(ConfigResource(ResourceType.TOPIC, name), set={CONFIG: value})
        self.ledger.configs.end_write((name, CONFIG), write, self.ledger.now)
        self._topics[name] = count

    async def _delete(self, admin: AsyncAdmin) -> None:
        name = self._pick()
        del self._topics[name]
        partitions, configs, now = self.ledger.partitions, self.ledger.configs, self.ledger.now
        gone = partitions.begin_write(name, GONE, now)
        unset = configs.begin_write((name, CONFIG), "", now)
        error = (await admin.delete_topics([name]))[name]
        if error is not None and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        partitions.end_write(name, gone, self.ledger.now)
        configs.end_write((name, CONFIG), unset, self.ledger.now)

    async def _prune(self, admin: AsyncAdmin) -> None:
        """Delete the oldest records of a topic that this client alone deletes from."""
        begun = self.ledger.now
        earliest = (await admin.list_offsets({PRUNED: "earliest"}))[PRUNED]
        latest = (await admin.list_offsets({PRUNED: "latest"}))[PRUNED]
        for each in (earliest, latest):
            if isinstance(each, KafkaError):
                raise each
        assert isinstance(earliest, ListedOffset)
        assert isinstance(latest, ListedOffset)
        self.ledger.starts.read(PRUNED, earliest.offset, begun)
        before = self.random.randint(earliest.offset, latest.offset)
        if before == earliest.offset:
            return
        self.ledger.history.may_be_gone(PRUNED, before)
        write = self.ledger.starts.begin_write(PRUNED, before, self.ledger.now)
        found = (await admin.delete_records({PRUNED: before}))[PRUNED]
        if isinstance(found, KafkaError):
            raise found
        self.ledger.starts.end_write(PRUNED, write, self.ledger.now)

    async def _look(self, admin: AsyncAdmin) -> None:
        """Compare what the node says of topics, those that are gone too, with what was done."""
        name = self.random.choice(self._past)
        begun = self.ledger.now
        listed = await admin.list_topics()
        count = len(listed[name].partitions) if name in listed else GONE
        self.ledger.partitions.read(name, count, begun)
        resource = ConfigResource(ResourceType.TOPIC, name)
        begun = self.ledger.now
        found = (await admin.describe_configs([resource], keys=[CONFIG]))[resource]
        if isinstance(found, KafkaError):
            if found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise found
            value = ""
        else:
            entry = found[CONFIG]
            is_set = entry.source is ConfigSource.TOPIC
            value = str(entry.value) if is_set else ""
        self.ledger.configs.read((name, CONFIG), value, begun)

    def _config_value(self) -> str:
        return str(self.random.randint(10**9, 10**10))
