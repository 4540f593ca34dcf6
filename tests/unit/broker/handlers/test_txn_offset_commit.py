"""TxnOffsetCommit: offsets that are committed with a transaction, in every version."""

import pytest

from moldau.broker.handlers.add_offsets_to_txn import handle_add_offsets_to_txn
from moldau.broker.handlers.offset_fetch import handle_offset_fetch
from moldau.broker.handlers.txn_offset_commit import (
    ADDING_SINCE,
    IDS_SINCE,
    handle_txn_offset_commit,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.broker.handlers.test_transactional_produce import ID, Till
from tests.unit.broker.world import TOPIC, TOPIC_ID

GROUP = "readers"
NOWHERE = b"?" * 16


@pytest.fixture
def till() -> Till:
    till = Till()
    till.w.create("__consumer_offsets", topic_id=b"offsets".ljust(16, b"."))
    till.w.environment.run()
    assert till.init() is ErrorCode.NONE
    return till


def commit(till: Till, version: int, *partitions: int, topic_id: bytes = TOPIC_ID, epoch: int = -1):
    """Commit an offset in a transaction; return the errors by topic and partition."""
    has_ids = version >= IDS_SINCE
    rows = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5)
        for index in partitions
    ]
    named = {"topic_id": topic_id} if has_ids else {"name": TOPIC}
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id=GROUP,
        producer_id=till.producer.id,
        producer_epoch=till.producer.epoch,
        generation_id_or_member_epoch=epoch,
        topics=[TxnOffsetCommitRequestTopic(partitions=rows, **named)],
    )
    till.ask(handle_txn_offset_commit, request, version)
    return {
        (topic.topic_id if has_ids else topic.name, row.partition_index): row.error_code
        for topic in till.settled().topics
        for row in topic.partitions
    }


def add_offsets(till: Till) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=ID,
        producer_id=till.producer.id,
        producer_epoch=till.producer.epoch,
        group_id=GROUP,
    )
    till.ask(handle_add_offsets_to_txn, request, 4)
    assert till.settled().error_code == 0


def committed(till: Till) -> int:
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    till.ask(handle_offset_fetch, OffsetFetchRequest(group_id=GROUP, topics=topics), 7)
    (row,) = till.settled().topics[0].partitions
    return row.committed_offset


@pytest.mark.parametrize("version", range(7))
def test_every_version_commits(till: Till, version: int) -> None:
    if version < ADDING_SINCE:
        add_offsets(till)
    place = (TOPIC_ID if version >= IDS_SINCE else TOPIC), 0
    assert commit(till, version, 0) == {place: 0}
    assert committed(till) == -1
    assert till.end() is ErrorCode.NONE
    assert committed(till) == 5


def test_what_does_not_exist_is_refused_alone(till: Till) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(till, 5, 0, 7) == {(TOPIC, 0): 0, (TOPIC, 7): unknown}
    assert commit(till, 6, 0, 7) == {(TOPIC_ID, 0): 0, (TOPIC_ID, 7): unknown}
    answer = commit(till, 6, 0, topic_id=NOWHERE)
    assert answer == {(NOWHERE, 0): ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_earlier_producers_know_generations_only(till: Till, version: int, code: ErrorCode) -> None:
    assert [*commit(till, version, 0, epoch=2).values()] == [code]
