"""A running node, its log from the beginning, and its snapshot with the rest say the same."""

import asyncio
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moldau.consensus.voters import VoterHistory
from moldau.controller.commands import (
    AllocateProducerIds,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    IncrementalAlterConfigs,
    UpdateFeatures,
)
from moldau.coordination.command import Command
from moldau.kernel.clock import Instant
from moldau.kernel.snapshot_id import find_snapshot_id
from moldau.log.config import Durability, LogConfig
from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.schema import Struct
from moldau.runtime.disk import FileDisk
from moldau.runtime.formatting import METADATA_FOLDER
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.metadata_loading import load_metadata
from moldau.runtime.metadata_log import open_metadata_log
from moldau.runtime.node import Node
from tests.stores import DEADLINE_SECONDS

STEPS = 50
SETTINGS = {
    "listeners": "PLAINTEXT://localhost:0",
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
RESOURCES = ((4, "", "log.retention.ms"), (16, "metrics", "interval.ms"))
"""All brokers, and the metrics of clients; each has a config whose value is a number."""


class Script:
    """Random commands of an administrator, most of which have an effect."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._made = 0

    def command(self, node: Node) -> Command[Any]:
        """Return the next one."""
        topics = [topic.name for topic in node.broker.image.topics]
        kinds = [self._create, self._configure_other, self._feature, self._producer_ids]
        if topics:
            kinds += [self._create, self._grow, self._configure, self._configure, self._delete]
        make = self._random.choice(kinds)
        return make(node, self._random.choice(topics) if topics else "")

    def _create(self, node: Node, _: str) -> Command[Any]:
        self._made += 1
        configs = [CreatableTopicConfig(name="retention.ms", value="5000")]
        topic = CreatableTopic(
            name=f"topic{self._made}",
            # What is large is a transaction of metadata.
            num_partitions=self._random.choice((1, 3, 5, 700)),
            replication_factor=1,
            configs=configs[: self._random.randrange(2)],
        )
        entropy = node.broker.environment.entropy(16)
        return CreateTopics(CreateTopicsRequest(topics=[topic]), entropy)

    def _grow(self, node: Node, topic: str) -> Command[Any]:
        found = node.broker.image.topics.find(topic)
        assert found is not None
        count = len(found.partitions) + self._random.randint(1, 3)
        wish = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        return CreatePartitions(CreatePartitionsRequest(topics=[wish]))

    def _delete(self, _: Node, topic: str) -> Command[Any]:
        return DeleteTopics(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)]))

    def _configure(self, _: Node, topic: str) -> Command[Any]:
        return self._change(2, topic, self._random.choice(("retention.ms", "segment.ms")))

    def _configure_other(self, _: Node, __: str) -> Command[Any]:
        return self._change(*self._random.choice(RESOURCES))

    def _change(self, resource_type: int, name: str, config: str) -> Command[Any]:
        is_deleted = self._random.randrange(3) == 0
        change = AlterableConfig(
            name=config,
            config_operation=int(is_deleted),
            value=None if is_deleted else str(self._random.randint(1000, 9000)),
        )
        resource = AlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=[change]
        )
        return IncrementalAlterConfigs(IncrementalAlterConfigsRequest(resources=[resource]))

    def _feature(self, _: Node, __: str) -> Command[Any]:
        name, kind = self._random.choice((("share.version", 2), ("group.version", 2)))
        level = self._random.randrange(2)
        update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind - level)
        return UpdateFeatures(UpdateFeaturesRequest(feature_updates=[update]), 1)

    def _producer_ids(self, node: Node, _: str) -> Command[Any]:
        broker = node.broker.image.brokers.find(1)
        assert broker is not None
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=broker.broker_epoch)
        return AllocateProducerIds(request)


def contents(value: Any) -> Any:
    """Return everything that an image has, in values that can be compared."""
    match value:
        case Struct():
            return {field.name: contents(getattr(value, field.name)) for field in value._fields}
        case dict():
            return {key: contents(each) for key, each in value.items()}
        case list() | tuple():
            return [contents(each) for each in value]
        case Topic():
            return contents((value.name, value.topic_id, value.partitions))
        case _ if hasattr(value, "__dict__") and type(value).__module__.startswith("moldau"):
            # Which topics a copy has to itself is not what it says.
            return contents({name: each for name, each in vars(value).items() if name != "_own"})
        case _:
            return value


async def loaded(directory: Path) -> ClusterImage:
    disk = FileDisk(str(directory)).waiting()
    log = open_metadata_log(disk, LogConfig(), Durability.FSYNC, Instant(0.0, 1_700_000_000_000))
    return (await load_metadata(log, VoterHistory(()))).image


@pytest.mark.parametrize("seed", range(2))
def test_all_ways_lead_to_the_same_image(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        node = Node({**SETTINGS, "log.dirs": str(tmp_path / "data")}, MachineEnvironment())
        await node.start()
        try:
            script = Script(seed)
            for _ in range(STEPS):
                answer = await node._metadata.controller.ask(script.command(node))
                assert not isinstance(answer, ErrorCode)
            assert contents(node.broker.image) == contents(node._metadata.image)
        finally:
            await node.stop()
        expected = contents(node.broker.image)
        for name in ("snapshot", "log"):
            shutil.copytree(tmp_path / "data" / METADATA_FOLDER, tmp_path / name / METADATA_FOLDER)
        assert contents(await loaded(tmp_path / "snapshot")) == expected
        first, *others = sorted((tmp_path / "log" / METADATA_FOLDER).glob("*-*.checkpoint"))
        assert find_snapshot_id(first.name).end_offset == 0, "with the voters, and nothing else"
        assert others
        for path in others:
            path.unlink()
        assert contents(await loaded(tmp_path / "log")) == expected

    async def in_time() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await scenario()

    asyncio.run(in_time())
