"""A node in this process: what is decided, committed, applied, snapshotted and loaded again."""

import asyncio
import functools
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moldau.controller.commands import (
    AlterConfigs,
    CreateMissingTopics,
    CreateTopics,
    DeleteTopics,
    IncrementalAlterConfigs,
)
from moldau.kernel.disk import DiskFailedError
from moldau.kernel.ids import TopicPartition
from moldau.kernel.snapshot_id import find_snapshot_id
from moldau.log.errors import PartitionOfflineError, StorageFullError
from moldau.metadata import features
from moldau.metadata.errors import ReplayError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import alter_configs
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.schema import Message
from moldau.runtime import controller_host, log_chores, sliced_commands, turns
from moldau.runtime.formatting import METADATA_FOLDER
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.node import Node, StartRefusedError
from tests.stores import DEADLINE_SECONDS

QUIET = {"listeners": "PLAINTEXT://localhost:0", "metadata.max.idle.interval.ms": "0"}


def scenario(function):
    """Run an async test."""

    @functools.wraps(function)
    def test(*arguments, **options):
        asyncio.run(function(*arguments, **options))

    return test


@asynccontextmanager
async def running(data: Path | None, **texts: str) -> AsyncIterator[Node]:
    given = {name.replace("_", "."): text for name, text in texts.items()}
    where = {"durability": "memory"} if data is None else {"log.dirs": str(data)}
    node = Node({**QUIET, **where, **given}, MachineEnvironment())
    async with asyncio.timeout(DEADLINE_SECONDS):
        await node.start()
        try:
            yield node
        finally:
            await node.stop()


def create_command(node: Node, *names: str, partitions: int = 1) -> CreateTopics:
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    entropy = node.broker.environment.entropy(16 * len(names))
    return CreateTopics(CreateTopicsRequest(topics=topics), entropy)


async def create(node: Node, *names: str, partitions: int = 1) -> list[int]:
    command = create_command(node, *names, partitions=partitions)
    answer = await node._metadata.controller.ask(command)
    return [topic.error_code for topic in answer.topics]


async def delete(node: Node, *names: str) -> None:
    topics = [DeleteTopicState(name=name) for name in names]
    answer = await node._metadata.controller.ask(DeleteTopics(DeleteTopicsRequest(topics=topics)))
    assert {topic.error_code for topic in answer.responses} == {0}


async def set_broker(node: Node, name: str, value: str, *, broker: str = "") -> int:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name=broker, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await node._metadata.controller.ask(IncrementalAlterConfigs(request))
    return answer.responses[0].error_code


@scenario
async def test_an_answer_means_that_this_broker_leads_the_partitions(tmp_path: Path):
    async with running(tmp_path) as node:
        assert await create(node, "rivers", partitions=3) == [0]
        for index in range(3):
            assert node.broker.replicas.find_leader(TopicPartition("rivers", index))
        assert node.broker.image.topics.partition_count == 3
        await delete(node, "rivers")
        assert node.broker.replicas.get(TopicPartition("rivers", 0)) is None
        assert node.broker.image.topics.partition_count == 0


@scenario
async def test_commands_wait_while_a_large_decision_is_appended(tmp_path: Path):
    async with running(None) as node:
        answers = await asyncio.gather(
            create(node, "wide", partitions=1800), create(node, "wide"), create(node, "narrow")
        )
        assert answers == [[0], [ErrorCode.TOPIC_ALREADY_EXISTS], [0]]
        assert node.broker.image.topics.partition_count == 1801
        assert node._metadata.image.topics.partition_count == 1801


@scenario
async def test_a_topic_shows_with_all_its_partitions_or_not_at_all(monkeypatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    async with running(None) as node:
        creating = asyncio.create_task(create(node, "rivers", partitions=50))
        seen = set()
        while not creating.done():
            seen.add(node.broker.image.topics.partition_count)
            await asyncio.sleep(0)
        assert seen <= {0, 50}


@scenario
async def test_files_of_a_deleted_topic_are_not_taken_for_those_of_a_new_one(monkeypatch):
    async with running(None) as node:
        await create(node, "rivers")
        old = node.broker.replicas.find_leader(TopicPartition("rivers", 0)).log

        async def out_of_room(*_):
            raise StorageFullError("no room")

        with monkeypatch.context() as patches:
            patches.setattr(node._store, "delete", out_of_room)
            await delete(node, "rivers")
            assert await create(node, "rivers") == [0]
        replica = node.broker.replicas.get(TopicPartition("rivers", 0))
        assert replica.log is not old
        assert replica.is_offline


@scenario
async def test_an_answer_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture):
    async with running(None) as node:
        command = CreateMissingTopics(["rivers"], node.broker.environment.entropy(16))
        node._metadata.controller.submit(command, raising(RuntimeError("oops")))
        assert await create(node, "lakes") == [0]
        assert not node.failure.done()
        assert "a decision could not be answered" in caplog.text


@scenario
async def test_a_decision_that_fails_is_told_and_nobody_tries_it_for_ever(monkeypatch, caplog):
    async with running(None) as node:
        host = node._metadata.controller
        command = CreateMissingTopics(["rivers"], node.broker.environment.entropy(16))
        with monkeypatch.context() as patches:
            patches.setattr(host.controller, "decide", raising(RuntimeError("oops")))
            assert await host.ask(command) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "could not decide CreateMissingTopics" in caplog.text
        assert await create(node, "lakes") == [0]


@scenario
async def test_a_part_that_dies_is_told_and_ends_the_node(monkeypatch, caplog):
    async with running(None) as node:
        monkeypatch.setattr(log_chores, "TICK_SECONDS", 0.0)
        for host in node._store.hosts:
            monkeypatch.setattr(host, "tick", raising(RuntimeError("oops")))
        await node.failure
        assert "RuntimeError: oops" in caplog.text


@scenario
async def test_a_metadata_log_that_fails_ends_the_node_and_the_stop_waits_for_nobody(monkeypatch):
    async with running(None) as node:
        monkeypatch.setattr(
            node._metadata.quorum.log, "append", raising(DiskFailedError("", "EIO"))
        )
        command = CreateMissingTopics(["rivers"], node.broker.environment.entropy(16))
        assert await node._metadata.controller.ask(command) is ErrorCode.NOT_CONTROLLER
        assert isinstance(await node.failure, DiskFailedError)


def raising(error: Exception):
    def do(*_):
        raise error

    return do


@scenario
async def test_many_topics_are_created_in_slices_and_answered_in_order(monkeypatch):
    monkeypatch.setattr(sliced_commands, "AT_ONCE_MAX", 3)
    async with running(None) as node:
        names = [f"topic{number}" for number in range(10)]
        assert await create(node, *names) == [0] * 10
        assert [topic.name for topic in node.broker.image.topics] == names
        # Those of one name stay together, however many they are.
        assert await create(node, *["again"] * 5) == [ErrorCode.INVALID_REQUEST]


@scenario
async def test_many_resources_are_configured_in_slices_and_answered_in_order(monkeypatch):
    monkeypatch.setattr(sliced_commands, "AT_ONCE_MAX", 3)
    async with running(None) as node:
        names = [f"topic{number}" for number in range(10)]
        await create(node, *names)
        decided = []
        decide = node._metadata.controller.controller.decide

        def watched(command, now):
            decided.append(len(command.request.resources))
            return decide(command, now)

        with monkeypatch.context() as patches:
            patches.setattr(node._metadata.controller.controller, "decide", watched)
            answer = await set_retention(node, "incremental", [*names, "nope"])
            assert answer == [*[(name, 0) for name in names], ("nope", 3)]
            assert decided == [3, 3, 3, 2]
            assert await set_retention(node, "all", ["nope", *names]) == [("nope", 3), *answer[:-1]]
        for name in names:
            replica = node.broker.replicas.get(TopicPartition(name, 0))
            assert replica.log.config.retention_ms == 5000


async def set_retention(node: Node, how: str, topics: list[str]) -> list[tuple[str, int]]:
    if how == "all":
        config = alter_configs.AlterableConfig(name="retention.ms", value="5000")
        asked = [
            alter_configs.AlterConfigsResource(
                resource_type=2, resource_name=name, configs=[config]
            )
            for name in topics
        ]
        command = AlterConfigs(alter_configs.AlterConfigsRequest(resources=asked))
    else:
        change = AlterableConfig(name="retention.ms", config_operation=0, value="5000")
        resources = [
            AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
            for name in topics
        ]
        command = IncrementalAlterConfigs(IncrementalAlterConfigsRequest(resources=resources))
    answer = await node._metadata.controller.ask(command)
    return [(each.resource_name, each.error_code) for each in answer.responses]


@scenario
async def test_without_room_a_large_decision_has_no_effect(monkeypatch):
    monkeypatch.setattr(controller_host, "RETRY_SECONDS", 0.01)
    async with running(None) as node:
        quorum = node._metadata.quorum
        propose = quorum.propose
        calls = []

        def out_of_room(values):
            calls.append(len(values))
            if len(calls) in (3, 4):
                raise StorageFullError("no room")
            return propose(values)

        monkeypatch.setattr(quorum, "propose", out_of_room)
        with pytest.raises(AttributeError):  # there is no answer
            await create(node, "wide", partitions=1800)
        assert await create(node, "narrow") == [0]
        assert [topic.name for topic in node.broker.image.topics] == ["narrow"]
        assert [topic.name for topic in node._metadata.image.topics] == ["narrow"]
        assert node.broker.replicas.get(TopicPartition("wide", 0)) is None


@scenario
async def test_a_snapshot_stands_for_the_log_before_it(tmp_path: Path):
    settings = {
        "metadata_log_max_record_bytes_between_snapshots": "2000",
        "metadata_max_retention_bytes": "3000",
    }
    async with running(tmp_path, **settings) as node:
        for number in range(40):
            await create(node, f"topic{number}")
        await delete(node, "topic7")
    names = [path.name for path in (tmp_path / METADATA_FOLDER).glob("*.checkpoint")]
    ids = sorted(find_snapshot_id(name) for name in names)
    assert ids[-1].end_offset > 50
    assert ids[0].end_offset > 0
    async with running(tmp_path, **settings) as node:
        found = [topic.name for topic in node.broker.image.topics]
        assert found == [f"topic{number}" for number in range(40) if number != 7]
        assert await create(node, "topic7") == [0]


@scenario
async def test_idle_records_are_written(tmp_path: Path):
    async with running(tmp_path, metadata_max_idle_interval_ms="20") as node:
        end = node._metadata.quorum.end_offset
        while node._applier.offset < end + 3:
            await asyncio.sleep(0.01)


@scenario
async def test_dynamic_settings_reach_logs_and_the_controller(tmp_path: Path):
    async with running(tmp_path) as node:
        await create(node, "rivers")
        log = node.broker.replicas.find_leader(TopicPartition("rivers", 0)).log
        assert await set_broker(node, "log.segment.bytes", "2000000") == 0
        assert log.config.segment_bytes == 2_000_000
        assert await set_broker(node, "log.segment.bytes", "3000000", broker="1") == 0
        assert log.config.segment_bytes == 3_000_000
        assert await set_broker(node, "log.segment.bytes", "1") == ErrorCode.INVALID_REQUEST
        assert await set_broker(node, "node.id", "7") == ErrorCode.INVALID_REQUEST
    async with running(tmp_path) as node:
        log = node.broker.replicas.find_leader(TopicPartition("rivers", 0)).log
        assert log.config.segment_bytes == 3_000_000


@scenario
async def test_internal_topics_have_no_more_replicas_than_brokers():
    async with running(None) as node:
        command = CreateMissingTopics(
            ["__consumer_offsets", "__transaction_state"], node.broker.environment.entropy(32)
        )
        answer = await node._metadata.controller.ask(command)
        assert [(t.num_partitions, t.replication_factor) for t in answer.topics] == [
            (50, 1),
            (50, 1),
        ]


@scenario
async def test_a_new_cluster_sets_the_minimum_in_sync_for_all_brokers():
    async with running(None) as node:
        assert node.broker.layers.dynamic_default == {"min.insync.replicas": "1"}


@scenario
async def test_the_broker_is_registered_and_leaves(tmp_path: Path):
    async with running(tmp_path) as node:
        broker = node.broker.image.brokers.find(1)
        assert not broker.fenced
        assert broker.end_points[0].port == node.addresses[0].port
        assert node.broker.image.controllers.keys() == {1}
        epoch = broker.broker_epoch
    async with running(tmp_path) as node:
        assert node.broker.image.brokers.find(1).broker_epoch > epoch
        assert node._store.hosts[0].previous_epoch == epoch


@scenario
async def test_a_directory_of_an_earlier_release_has_more_features(tmp_path: Path, monkeypatch):
    earlier = (*features._DEFAULTS, (29, "streams.version", 1))
    monkeypatch.setattr(features, "_DEFAULTS", earlier)
    async with running(tmp_path, metadata_version="4.4") as node:
        await create(node, "rivers")
    monkeypatch.undo()
    async with running(tmp_path) as node:
        levels = node.broker.image.levels
        assert (levels["metadata.version"], levels["streams.version"]) == (33, 1)
        assert not node.broker.image.brokers.find(1).fenced
        assert node.broker.replicas.get(TopicPartition("rivers", 0)).log is not None


@scenario
async def test_a_level_that_is_too_new_is_one_line(tmp_path: Path, monkeypatch):
    async with running(tmp_path):
        pass
    monkeypatch.setattr("moldau.metadata.image.refuse_level", lambda *_: "it is from the future")
    with pytest.raises(StartRefusedError, match="from the future"):
        async with running(tmp_path):
            pass


@scenario
async def test_partitions_of_a_lost_directory_are_offline(tmp_path: Path):
    roots = [tmp_path / "a", tmp_path / "b"]
    both = ",".join(map(str, roots))
    async with running(None, durability="fsync", log_dirs=both) as node:
        await create(node, "rivers", partitions=2)
        host = node._store.hosts[1]
        host.fail(DiskFailedError("", "EIO"))
        lost = [p for p in node._store if node._store.place_of(p) is host]
        while len(node.broker.image.brokers.find(1).log_dirs) == 2:
            await asyncio.sleep(0.01)
        assert len(lost) == 1
        assert node.broker.replicas.get(lost[0]).is_offline
        assert [each.is_online for each in node.broker.directories.describe()] == [True, False]


@scenario
async def test_partitions_of_a_directory_that_does_not_open_are_not_made_anew(tmp_path: Path):
    roots = [tmp_path / "a", tmp_path / "b"]
    both = ",".join(map(str, roots))
    async with running(None, durability="fsync", log_dirs=both) as node:
        await create(node, "rivers", partitions=2)
        [elsewhere] = [p for p in node._store if node._store.place_of(p).root == str(roots[1])]
    shutil.rmtree(roots[1])
    roots[1].write_text("no directory")
    async with running(None, durability="fsync", log_dirs=both) as node:
        assert node.broker.replicas.get(elsewhere).is_offline


def plant(node: Node, name: str) -> None:
    """Have the broker's image, and not the controller's, break at a topic of this name."""
    replay = node.broker.image.replay

    def replay_or_break(record: Message) -> None:
        if getattr(record, "name", None) == name:
            raise ReplayError(f"{name} does not fit")
        replay(record)

    node.broker.image.replay = replay_or_break


@scenario
async def test_metadata_that_cannot_be_applied_ends_the_node(tmp_path: Path):
    async with running(tmp_path) as node:
        controller = node._metadata.controller
        assert await create(node, "rivers") == [0]
        plant(node, "lakes")
        snapshots: list[int] = []
        node._applier._applied = snapshots.append
        failed = ErrorCode.UNKNOWN_SERVER_ERROR
        answers = [controller.ask(create_command(node, name)) for name in ("lakes", "seas")]
        assert await asyncio.gather(*answers) == [failed, failed], "what comes behind fails, too"
        assert await controller.ask(create_command(node, "bays")) == failed
        error = await node.failure
        assert re.fullmatch(
            r"metadata below offset \d+ cannot be applied: ReplayError: lakes does not fit",
            str(error),
        )
        assert "moldau_metadata_apply_failed_total 1\n" in node.metrics.render()
        assert snapshots == [], "what is not the cluster's image is not written down"
    # What was decided stands: the next start has it.
    async with running(tmp_path) as node:
        names = {topic.name for topic in node.broker.image.topics}
        assert {"rivers", "lakes", "seas", "bays"} <= names
        assert node.broker.replicas.get(TopicPartition("lakes", 0)).log is not None


@scenario
async def test_a_failure_to_act_on_metadata_ends_the_node(monkeypatch):
    async with running(None) as node:

        def fail(*_arguments: object, **_options: object) -> None:
            raise RuntimeError("planted")

        monkeypatch.setattr(node.broker.replicas, "lead", fail)
        command = create_command(node, "lakes")
        assert await node._metadata.controller.ask(command) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "planted" in str(await node.failure)


@scenario
async def test_a_decision_that_the_controller_cannot_replay_ends_the_node(monkeypatch):
    async with running(None) as node:
        host = node._metadata.controller

        def fail(record: Message) -> None:
            raise ReplayError("planted")

        monkeypatch.setattr(host.controller, "replay", fail)
        assert await host.ask(create_command(node, "lakes")) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "planted" in str(await node.failure)
        monkeypatch.undo()


@scenario
async def test_a_directory_that_fails_takes_its_partitions_offline_and_no_more(monkeypatch):
    async with running(None) as node:
        create_log = node._store.try_create

        def fail_for_lakes(partition: TopicPartition, *arguments: object) -> object:
            if partition.topic == "lakes":
                raise PartitionOfflineError("its disk has failed")
            return create_log(partition, *arguments)

        monkeypatch.setattr(node._store, "try_create", fail_for_lakes)
        assert await create(node, "lakes", "rivers") == [0, 0]
        assert node.broker.replicas.get(TopicPartition("lakes", 0)).is_offline
        assert node.broker.replicas.get(TopicPartition("rivers", 0)).log is not None
        assert not node.failure.done()
        assert "moldau_metadata_apply_failed_total 1\n" in node.metrics.render()
