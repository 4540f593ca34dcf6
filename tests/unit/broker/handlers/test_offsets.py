"""OffsetCommit, OffsetFetch and OffsetDelete: what the broker does before and after the group."""

import pytest

from moldau.broker.handlers.offset_commit import handle_offset_commit
from moldau.broker.handlers.offset_delete import handle_offset_delete
from moldau.broker.handlers.offset_fetch import handle_offset_fetch
from moldau.log.config import Durability
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.stored.cluster_metadata import RemoveTopicRecord
from tests.unit.broker.world import TOPIC, TOPIC_ID, World

GROUP = "readers"
NOWHERE = b"?" * 16


@pytest.fixture
def world() -> World:
    world = World()
    world.create(partitions=2)
    world.create("__consumer_offsets", topic_id=b"offsets".ljust(16, b"."))
    world.environment.run()
    return world


def commit(world: World, *partitions: int, version: int = 9, **fields):
    """Commit; return the errors by topic and partition."""
    named = {"name": fields.pop("topic", TOPIC), "topic_id": fields.pop("topic_id", TOPIC_ID)}
    rows = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
        for index in partitions
    ]
    topics = [OffsetCommitRequestTopic(partitions=rows, **named)]
    request = OffsetCommitRequest(group_id=GROUP, topics=topics, **fields)
    answer = world.ask(handle_offset_commit, request, version)
    if answer is None:
        world.flush()
        answer = world.connection.answer
    return {
        (topic.topic_id if version == 10 else topic.name, row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }


def fetch(world: World, *partitions: int, version: int = 9, **named):
    named = {"name": TOPIC, "topic_id": TOPIC_ID} | named
    topics = [OffsetFetchRequestTopics(partition_indexes=partitions, **named)]
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics if partitions else None)
    answer = world.ask(handle_offset_fetch, OffsetFetchRequest(groups=[group]), version)
    (only,) = answer.groups
    return only


def older_fetch(world: World, *partitions: int, version: int):
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=partitions)]
    request = OffsetFetchRequest(group_id=GROUP, topics=topics if partitions else None)
    return world.ask(handle_offset_fetch, request, version)


class TestCommit:
    @pytest.mark.parametrize("version", range(11))
    def test_every_version_commits(self, world: World, version: int) -> None:
        place = (TOPIC_ID if version == 10 else TOPIC), 0
        assert commit(world, 0, version=version) == {place: 0}
        assert fetch(world, 0).topics[0].partitions[0].committed_offset == 5

    def test_what_does_not_exist_is_refused_alone(self, world: World) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert commit(world, 0, 7) == {(TOPIC, 0): 0, (TOPIC, 7): unknown}
        assert commit(world, 7) == {(TOPIC, 7): unknown}
        assert commit(world, 0, topic="none") == {("none", 0): unknown}

    def test_an_id_that_is_not_known(self, world: World) -> None:
        answer = commit(world, 0, version=10, topic_id=NOWHERE)
        assert answer == {(NOWHERE, 0): ErrorCode.UNKNOWN_TOPIC_ID}

    def test_what_the_group_refuses_is_told_of_all(self, world: World) -> None:
        answer = commit(world, 0, 7, generation_id_or_member_epoch=1)
        code = ErrorCode.GROUP_ID_NOT_FOUND
        assert answer == {(TOPIC, 0): code, (TOPIC, 7): code}

    def test_a_coordinator_that_is_not_here(self, world: World) -> None:
        world.broker.image.replay(RemoveTopicRecord(topic_id=b"offsets".ljust(16, b".")))
        assert commit(world, 0) == {(TOPIC, 0): ErrorCode.NOT_COORDINATOR}

    def test_a_disk_that_takes_too_long(self) -> None:
        world = World(durability=Durability.FSYNC)
        world.create()
        world.create("__consumer_offsets", topic_id=b"offsets".ljust(16, b"."))
        world.environment.run()
        rows = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
        request = OffsetCommitRequest(group_id=GROUP, topics=topics)

        assert world.ask(handle_offset_commit, request, 9) is None
        world.flush()
        world.environment.run(4.9)
        assert not world.connection.answers
        world.environment.run(0.2)

        (row,) = world.connection.answer.topics[0].partitions
        assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        # It is committed all the same, when the disk is there again.
        world.sync()
        assert fetch(world, 0).topics[0].partitions[0].committed_offset == 5


class TestFetch:
    @pytest.mark.parametrize("version", range(8))
    def test_the_versions_of_one_group(self, world: World, version: int) -> None:
        commit(world, 0)
        answer = older_fetch(world, 0, 1, version=version)
        assert [row.committed_offset for row in answer.topics[0].partitions] == [5, -1]

    @pytest.mark.parametrize("version", range(2, 8))
    def test_all_topics_of_one_group(self, world: World, version: int) -> None:
        commit(world, 1)
        answer = older_fetch(world, version=version)
        assert [row.partition_index for row in answer.topics[0].partitions] == [1]

    @pytest.mark.parametrize("version", range(8, 11))
    def test_all_topics_of_a_group(self, world: World, version: int) -> None:
        commit(world, 1)
        (topic,) = fetch(world, version=version).topics
        assert (topic.topic_id if version == 10 else topic.name) in (TOPIC, TOPIC_ID)
        assert [row.partition_index for row in topic.partitions] == [1]

    def test_by_id_a_topic_that_is_gone_cannot_be_told(self, world: World) -> None:
        commit(world, 1)
        world.broker.image.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
        assert fetch(world, version=10).topics == ()
        assert len(fetch(world, version=9).topics) == 1

    def test_an_id_that_is_not_known(self, world: World) -> None:
        (topic,) = fetch(world, 0, version=10, topic_id=NOWHERE).topics
        assert topic.topic_id == NOWHERE
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert topic.partitions[0].committed_offset == -1

    @pytest.mark.parametrize("version", range(1, 9))
    def test_a_coordinator_that_is_not_here(self, world: World, version: int) -> None:
        world.broker.image.replay(RemoveTopicRecord(topic_id=b"offsets".ljust(16, b".")))
        if version == 8:
            assert fetch(world, 0, version=8).error_code == ErrorCode.NOT_COORDINATOR
            return
        answer = older_fetch(world, 0, version=version)
        if version == 1:
            (row,) = answer.topics[0].partitions
            assert row.error_code == ErrorCode.NOT_COORDINATOR
        else:
            assert answer.error_code == ErrorCode.NOT_COORDINATOR
            assert answer.topics == ()

    def test_one_that_cannot_record_is_looked_for_elsewhere(self, world: World) -> None:
        replica = world.replicas.get(("__consumer_offsets", 0))
        assert replica is not None
        replica.configure(2, (1, 2), (1,))
        assert fetch(world, 0).error_code == ErrorCode.NOT_COORDINATOR


class TestDelete:
    def test_what_does_not_exist_is_refused_alone(self, world: World) -> None:
        commit(world, 0, 1)
        answer = ask_delete(world, 0, 7)
        errors = {row.partition_index: row.error_code for row in answer.topics[0].partitions}
        assert errors == {0: 0, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        rows = fetch(world, 0, 1).topics[0].partitions
        assert [row.committed_offset for row in rows] == [-1, 5]

    def test_a_group_without_a_name(self, world: World) -> None:
        assert ask_delete(world, 0, group="").error_code == ErrorCode.INVALID_GROUP_ID

    def test_a_group_that_is_not_there(self, world: World) -> None:
        answer = ask_delete(world, 7)
        assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())


def ask_delete(world: World, *partitions: int, group: str = GROUP):
    rows = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=rows)]
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    answer = world.ask(handle_offset_delete, request, 0)
    if answer is None:
        world.flush()
        answer = world.connection.answer
    return answer


def test_a_topic_that_is_deleted_takes_its_offsets_along(world: World) -> None:
    commit(world, 0)
    topic = world.broker.image.topics.find(TOPIC)
    assert topic is not None
    world.broker.coordinators.topics_changed([topic])
    world.flush()
    assert fetch(world).topics == ()
