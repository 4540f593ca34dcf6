from moldau.broker.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.unit.broker.world import TOPIC, TOPIC_ID, World
from tests.unit.log.logs import batch_of


def ask(w: World, epoch: int, *, current: int = -1, topic: str = TOPIC, version: int = 4):
    partition = OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    )
    response = w.ask(handle_offset_for_leader_epoch, request, version)
    (row,) = response.topics[0].partitions
    return row.error_code, row.leader_epoch, row.end_offset


def test_where_epochs_end():
    w = World()
    w.create()
    w.write(batch_of(3))
    w.replicas.lead(TopicPartition(TOPIC, 0), TopicId(TOPIC_ID), w.log().log, LeaderEpoch(8))
    assert ask(w, 8) == (0, 8, 3), "the epoch has begun"
    w.write(batch_of(2))
    assert ask(w, 8) == (0, 8, 5)
    assert ask(w, 5) == (0, 5, 3)
    assert ask(w, 7) == (0, 5, 3)
    assert ask(w, 4) == (0, 4, 0)
    assert ask(w, 9) == (0, -1, -1)
    assert ask(w, -1) == (0, -1, -1)
    assert ask(w, 5, version=0) == (0, -1, 3)


def test_an_empty_log_has_its_leaders_epoch():
    w = World()
    w.create()
    assert ask(w, 5) == (0, 5, 0)
    assert ask(w, 3) == (0, 3, 0)


def test_errors():
    w = World()
    w.create()
    assert ask(w, 5, current=4)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(w, 5, current=6)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(w, 5, topic="nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
