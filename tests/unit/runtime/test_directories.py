"""A node with several log directories: the controller knows where each log is."""

import asyncio
import shutil
from pathlib import Path

import pytest

from moldau.kernel.disk import DiskFailedError, DiskFullError
from moldau.kernel.ids import TopicPartition
from moldau.log.folders import FolderState, marked_name
from moldau.metadata.topics import NO_LEADER
from moldau.runtime.node import Node
from tests.stores import append, batch_of
from tests.unit.runtime.test_node import create, delete, running, scenario

TOPIC = "rivers"


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


def two(roots: list[Path]):
    return running(None, durability="fsync", log_dirs=",".join(map(str, roots)))


def declared(node: Node, index: int):
    return node.broker.image.topics.find(TOPIC).partitions[index]


def told(node: Node) -> dict[int, str]:
    """Where the controller believes each partition to be."""
    roots = {host.identity.directory_id: host.root for host in node._store.hosts}
    partitions = node.broker.image.topics.find(TOPIC).partitions
    return {index: roots.get(each.directories[0], "?") for index, each in partitions.items()}


def found(node: Node) -> dict[int, str]:
    """Where they are."""
    return {p.partition: node._store.place_of(p).root for p in node._store if p.topic == TOPIC}


async def agree(node: Node) -> None:
    while told(node) != found(node):
        await asyncio.sleep(0.005)


async def use(node: Node, index: int) -> None:
    replica = node.broker.replicas.get(TopicPartition(TOPIC, index))
    append(node._store, replica.partition, batch_of(b"water"))
    node.flush()
    while replica.log.high_watermark < replica.log.log_end:
        await asyncio.sleep(0.001)


async def leads(node: Node, *indexes: int) -> None:
    while any(declared(node, index).leader == NO_LEADER for index in indexes):
        await asyncio.sleep(0.005)


@scenario
async def test_the_controller_is_told_of_new_partitions(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=6)
        await agree(node)
        before = told(node)
        assert sorted(before.values()) == [str(root) for root in roots for _ in range(3)]
        assert {declared(node, index).leader_epoch for index in range(6)} == {0}
    async with two(roots) as node:
        assert found(node) == told(node) == before


@scenario
async def test_only_what_was_in_a_lost_directory_is_offline(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=4)
        await agree(node)
        before = found(node)
        await use(node, 0)
        await use(node, 1)
    shutil.rmtree(roots[1])
    roots[1].write_text("no directory")
    async with two(roots) as node:
        for index, root in before.items():
            is_lost = root == str(roots[1])
            replica = node.broker.replicas.get(TopicPartition(TOPIC, index))
            assert replica.is_offline == is_lost
            assert (declared(node, index).leader == NO_LEADER) == is_lost
        assert await create(node, "lakes") == [0]


@scenario
async def test_an_empty_directory_in_its_place_does_not_bring_back_its_logs(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=2)
        await agree(node)
        [lost] = [index for index, root in found(node).items() if root == str(roots[1])]
        await use(node, lost)
    shutil.rmtree(roots[1])
    async with two(roots) as node:
        assert node.broker.replicas.get(TopicPartition(TOPIC, lost)).is_offline
        assert declared(node, lost).leader == NO_LEADER
        assert declared(node, 1 - lost).leader == 1


@scenario
async def test_a_log_that_somebody_moved_by_hand_is_led_where_it_is(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=2)
        await agree(node)
        [there] = [index for index, root in found(node).items() if root == str(roots[1])]
        await use(node, there)
    shutil.move(roots[1] / f"{TOPIC}-{there}", roots[0] / f"{TOPIC}-{there}")
    shutil.rmtree(roots[1])
    async with two(roots) as node:
        await agree(node)
        await leads(node, there)
        assert node.broker.replicas.get(TopicPartition(TOPIC, there)).log.log_end == 1


@scenario
async def test_a_moved_log_is_where_the_controller_says(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=1)
        await use(node, 0)
        source = found(node)[0]
        [target] = {str(root) for root in roots} - {source}
        node.broker.directories.move(TopicPartition(TOPIC, 0), target)
        while found(node)[0] != target or TopicPartition(TOPIC, 0) in node._store.moves:
            await use(node, 0)
        assert told(node)[0] == target
        await use(node, 0)
        end = node._store.get(TopicPartition(TOPIC, 0)).log_end
    async with two(roots) as node:
        assert found(node) == told(node) == {0: target}
        assert node._store.get(TopicPartition(TOPIC, 0)).log_end == end


@scenario
async def test_a_copy_is_not_taken_for_the_log_of_a_lost_directory(roots):
    """The controller was told of the move, and it did not end before the directory was lost."""
    target, source = roots  # the metadata log is in the first
    partition = TopicPartition(TOPIC, 0)
    async with two(roots) as node:
        node.broker.directories.move(partition, str(source))
        await create(node, TOPIC)
        await use(node, 0)
        topic_id = node.broker.image.topics.find(TOPIC).topic_id
        directory_id = node._store.hosts[0].identity.directory_id
        node._store.moves._copying[partition] = None  # so that nobody tells otherwise
        await node._assign_directory(partition, topic_id, directory_id)
        assert told(node) == {0: str(target)}
        del node._store.moves._copying[partition]
    folder = target / marked_name(partition, bytes(16), FolderState.FUTURE)
    folder.mkdir()
    shutil.copy(source / str(partition) / "partition.metadata", folder)
    kept = source.with_name("kept")
    source.rename(kept)
    source.write_text("no directory")
    async with two(roots) as node:
        assert node.broker.replicas.get(partition).is_offline
        assert partition not in node._store
    source.unlink()
    kept.rename(source)
    async with two(roots) as node:
        while found(node).get(0) != str(target):
            await asyncio.sleep(0.005)
        assert node._store.get(partition).log_end == 1


@scenario
async def test_a_wish_before_a_partition_comes(roots):
    async with two(roots) as node:
        for index in range(4):
            node.broker.directories.move(TopicPartition(TOPIC, index), str(roots[1]))
        await create(node, TOPIC, partitions=4)
        await agree(node)
        assert set(found(node).values()) == {str(roots[1])}


@scenario
async def test_a_topic_is_deleted_and_made_anew_while_it_moves(roots):
    async with two(roots) as node:
        for _ in range(5):
            await create(node, TOPIC, partitions=4)
            for index in range(4):
                await use(node, index)
                [target] = {str(root) for root in roots} - {found(node)[index]}
                node.broker.directories.move(TopicPartition(TOPIC, index), target)
            await delete(node, TOPIC)
        await create(node, TOPIC, partitions=4)
        await agree(node)
        for index in range(4):
            assert node._store.get(TopicPartition(TOPIC, index)).log_end == 0


@scenario
async def test_a_deleted_partition_of_a_failed_directory_is_no_replica(roots):
    async with two(roots) as node:
        await create(node, TOPIC, partitions=2)
        await agree(node)
        host = node._store.hosts[1]
        await delete(node, TOPIC)
        host.fail(DiskFailedError("", "EIO"))
        assert len(node.broker.replicas) == 0


@scenario
async def test_a_delete_waits_for_room(tmp_path, monkeypatch):
    monkeypatch.setattr("moldau.runtime.metadata_applier.RETRY_SECONDS", 0.01)
    async with running(tmp_path) as node:
        await create(node, TOPIC)
        await use(node, 0)
        core = node._store.hosts[0].core
        real, refused = core.disk.rename, []

        def rename(path: str, to: str) -> None:
            if len(refused) < 3:
                refused.append(path)
                raise DiskFullError(path, "no room")
            real(path, to)

        monkeypatch.setattr(core.disk, "rename", rename)
        await delete(node, TOPIC)
        await create(node, TOPIC)
        replica = node.broker.replicas.get(TopicPartition(TOPIC, 0))
        assert replica.is_offline
        while replica.is_offline:
            await asyncio.sleep(0.005)
        assert len(refused) == 3
        assert replica.log.log_end == 0
        await use(node, 0)
