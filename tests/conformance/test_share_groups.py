"""Share groups, as their members and leaders speak: what is answered, and what is refused.

MOLDAU_CONFORMANCE_BROKER=apache runs the same against Apache Kafka 4.3.1.
"""

import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from moldau._native.records import Record
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from moldau.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from moldau.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from tests.conformance.brokers import RunningBroker
from tests.share_members import ShareMember, acquired_of, configure, records_of, topic_id_of
from tests.wire import Wire

LOCK_SECONDS = 30
TIME = 1_700_000_000_000
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Join = Callable[..., ShareMember]


@pytest.fixture
def topic(wire: Wire) -> str:
    name = f"share-{secrets.token_hex(4)}"
    wire.create_topic(name)
    produce(wire, name, 10)
    return name


def produce(wire: Wire, topic: str, count: int) -> None:
    records = [Record(n, TIME + n, None, b"value %d" % n, []) for n in range(count)]
    assert wire.produce(topic, records).error_code == 0


@pytest.fixture
def group(wire: Wire) -> str:
    name = f"group-{secrets.token_hex(4)}"
    configure(wire, name, share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
    return name


@pytest.fixture
def member(broker: RunningBroker, group: str, topic: str) -> Iterator[Join]:
    """Make members of the group, by default such that have joined."""
    members = []

    def make(*, joins: bool = True) -> ShareMember:
        made = ShareMember(broker.host, broker.port, group, topic)
        members.append(made)
        if joins:
            made.join()
        return made

    yield make
    for each in members:
        each.close()


def describe_offsets(
    wire: Wire, group: str, topics: list[object] | None = None
) -> DescribeShareGroupOffsetsResponseGroup:
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    [answer] = wire.call(request, DescribeShareGroupOffsetsResponse, 1).groups
    return answer


def describe(wire: Wire, group: str) -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=[group])
    return wire.call(request, ShareGroupDescribeResponse, 1).groups[0]


def test_records_are_read_and_acknowledged(member: Join) -> None:
    a = member()
    answer = a.fetch()
    [row] = answer.responses[0].partitions
    assert acquired_of(row) == [(0, 9, 1)]
    assert [record.value for record in records_of(row)] == [b"value %d" % n for n in range(10)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert a.outcome([(0, 9, [ACCEPT])]) == 0
    assert not a.fetch(wait_ms=10).responses


def test_two_members_share(member: Join, wire: Wire, topic: str) -> None:
    a, b = member(), member()
    assert a.acquire() == [(0, 9, 1)]
    produce(wire, topic, 5)
    assert b.acquire() == [(10, 14, 1)]
    # What one releases the other gets.
    assert a.outcome([(0, 9, [RELEASE] * 4 + [ACCEPT] * 6)]) == 0
    assert b.acquire() == [(0, 3, 2)]


def test_acknowledgements_come_along_with_a_fetch(member: Join) -> None:
    a = member()
    a.acquire()
    answer = a.fetch(said=[(0, 9, [ACCEPT] * 3 + [RELEASE] * 7)])
    [row] = answer.responses[0].partitions
    assert (row.error_code, row.acknowledge_error_code) == (0, 0)
    if not row.acquired_records:
        assert a.acquire() == [(3, 9, 2)]
    else:
        assert acquired_of(row) == [(3, 9, 2)]
    answer = a.fetch(said=[(0, 4, [ACCEPT])], wait_ms=10)
    # The first three are done, and the other two are this member's.
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    answer = a.fetch(said=[(3, 4, [ACCEPT])], wait_ms=10)
    code = answer.responses[0].partitions[0].acknowledge_error_code
    assert code in (0, ErrorCode.INVALID_RECORD_STATE)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([(0, 9, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [9])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [-1])], ErrorCode.INVALID_REQUEST),
        ([(9, 0, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 5, [ACCEPT]), (5, 9, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
        ([(0, 5, [ACCEPT]), (4, 9, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(5, 9, [ACCEPT]), (0, 4, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 10, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(20, 30, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [RENEW])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [GAP])], ErrorCode.NONE),
    ],
)
def test_acknowledgements_that_are_refused(member: Join, said: object, code: ErrorCode) -> None:
    a = member()
    a.acquire()
    assert a.outcome(said) == code  # type: ignore[arg-type]


def test_nothing_is_acknowledged(member: Join) -> None:
    a = member()
    a.acquire()
    assert not a.acknowledge([]).responses
    a.topic_ids[a.topics[0]] = b"n" * 16
    assert a.outcome([(0, 9, [ACCEPT])]) == ErrorCode.UNKNOWN_TOPIC_ID


def test_what_is_acknowledged_twice_is_refused(member: Join) -> None:
    a, b = member(), member()
    b.fetch(wait_ms=10)
    a.fetch(wait_ms=10)
    holder, other = (a, b) if a.outcome([(5, 5, [RELEASE])]) == 0 else (b, a)
    assert other.outcome([(6, 9, [ACCEPT])]) == ErrorCode.INVALID_RECORD_STATE
    assert holder.outcome([(6, 9, [ACCEPT])]) == 0
    assert holder.outcome([(6, 9, [ACCEPT])]) == ErrorCode.INVALID_RECORD_STATE
    # What lies before the first record that is not done is passed over.
    assert holder.outcome([(0, 4, [ACCEPT])]) == 0
    assert holder.outcome([(0, 4, [ACCEPT])]) == 0


def test_locks_are_renewed(member: Join) -> None:
    a = member()
    a.acquire()
    assert a.outcome([(0, 9, [RENEW])], is_renewal=True) == 0
    assert a.outcome([(0, 9, [ACCEPT])]) == 0
    request = a.fetch_request()
    request.is_renew_ack = True
    answer = a.wire.call(request, ShareFetchResponse, 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_record_is_given_up_when_it_failed_too_often(
    member: Join, wire: Wire, group: str
) -> None:
    configure(wire, group, share_delivery_count_limit="2")
    a = member()
    for count in (1, 2):
        acquired = a.acquire()
        assert {each for _, _, each in acquired} == {count}
        for first, last, _ in acquired:
            assert a.outcome([(first, last, [RELEASE])]) == 0
    assert not a.fetch(wait_ms=10).responses


def test_no_more_records_than_were_asked_for(member: Join, wire: Wire, topic: str) -> None:
    a = member()
    assert a.acquire(records_max=3, is_strict=True) == [(0, 2, 1)]
    produce(wire, topic, 10)
    # Batches are not cut, unless that is asked for.
    assert a.acquire(records_max=3) in ([(3, 9, 1)], [(3, 5, 1)])


def test_sessions(member: Join) -> None:
    a = member()
    assert a.fetch(epoch=5).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert a.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert a.acknowledge([], epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert a.acknowledge([], epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert a.fetch(said=[(0, 1, [ACCEPT])]).error_code == ErrorCode.INVALID_REQUEST
    a.acquire()
    assert a.fetch(epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert a.acknowledge([], epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert a.acknowledge([(0, 4, [ACCEPT])], epoch=-1).error_code == 0
    assert a.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    # The rest is released, and the first fetch of another session begins with it.
    assert a.acquire(epoch=0) == [(5, 9, 2)]


def test_a_connection_that_goes_gives_back_what_it_has(member: Join) -> None:
    a, b = member(), member()
    assert a.acquire() == [(0, 9, 1)]
    closed = time.monotonic()
    a.close()
    assert b.acquire() == [(0, 9, 2)]
    assert time.monotonic() - closed < LOCK_SECONDS, "only when the lock had ended"


@pytest.mark.parametrize(
    ("group_id", "member_id"), [(None, "m"), ("g", None), ("g", ""), ("g", "m" * 37)]
)
def test_who_asks_has_to_say_so(wire: Wire, group_id: str | None, member_id: str | None) -> None:
    fetch = ShareFetchRequest(group_id=group_id, member_id=member_id, share_session_epoch=0)
    assert wire.call(fetch, ShareFetchResponse, 1).error_code == ErrorCode.INVALID_REQUEST
    acknowledge = ShareAcknowledgeRequest(
        group_id=group_id, member_id=member_id, share_session_epoch=1
    )
    answer = wire.call(acknowledge, ShareAcknowledgeResponse, 1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_the_first_fetch_from_new_partitions_brings_the_first_that_is_ready(
    broker: RunningBroker, wire: Wire, group: str
) -> None:
    topic = f"share-{secrets.token_hex(4)}"
    wire.create_topic(topic, 4)
    for partition in (1, 2, 3):
        records = [Record(n, TIME, None, b"%d" % n) for n in range(5)]
        assert wire.produce(topic, records, partition).error_code == 0
    a = ShareMember(broker.host, broker.port, group, topic)
    while len(a.join()[a.topic_ids[topic]]) < 4:
        pass
    rows = a.fetch(partitions=range(4)).responses[0].partitions
    assert {row.partition_index for row in rows} <= {0, 1}, "the others were not looked at"
    [row] = [row for row in rows if row.acquired_records]
    assert (row.partition_index, acquired_of(row)) == (1, [(0, 4, 1)])
    read = {1}
    while len(read) < 3:  # in Kafka as many at a time as are ready
        for row in a.fetch().responses[0].partitions:
            assert acquired_of(row) == [(0, 4, 1)]
            read.add(row.partition_index)
    assert read == {1, 2, 3}
    a.close()


def test_partitions_that_are_not_there(member: Join) -> None:
    a = member()
    a.topic_ids["none"] = b"n" * 16
    assert not a.fetch("none", wait_ms=10).responses
    a.session_epoch = 0
    answer = a.fetch(partitions=[0, 7], wait_ms=10)
    codes = {
        row.partition_index: row.error_code for each in answer.responses for row in each.partitions
    }
    assert codes[7] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_heartbeats_that_are_refused(member: Join) -> None:
    a = member()
    assert a.heartbeat(99).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert a.heartbeat(0).error_code == ErrorCode.INVALID_REQUEST
    assert a.heartbeat(-2).error_code == ErrorCode.INVALID_REQUEST
    stranger = member(joins=False)
    assert stranger.heartbeat(1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.heartbeat(-1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    stranger.group = f"other-{secrets.token_hex(4)}"
    assert stranger.heartbeat(1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.heartbeat(-1).member_epoch == -1


def test_a_group_is_described(member: Join, wire: Wire, group: str, topic: str) -> None:
    a = member()
    found = describe(wire, group)
    assert (found.error_code, found.group_state, found.assignor_name) == (0, "Stable", "simple")
    assert found.group_epoch == found.assignment_epoch == a.epoch
    [one] = found.members
    assert (one.member_id, one.client_id) == (a.member_id, "wire")
    assert list(one.subscribed_topic_names) == [topic]
    [assigned] = one.assignment.topic_partitions
    assert (assigned.topic_name, list(assigned.partitions)) == (topic, [0])
    a.heartbeat(-1)
    assert describe(wire, group).group_state == "Empty"
    missing = describe(wire, "nobody")
    assert (missing.error_code, missing.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "")
    assert describe(wire, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_offsets_are_described(member: Join, wire: Wire, group: str, topic: str) -> None:
    a = member()
    a.acquire()
    assert a.outcome([(0, 9, [ACCEPT] * 4 + [RELEASE] * 2 + [ACCEPT] * 4)]) == 0
    assert a.acquire() == [(4, 5, 2)]
    assert a.outcome([(4, 4, [RELEASE])]) == 0
    described = describe_offsets(wire, group)
    [row] = described.topics[0].partitions
    assert (described.topics[0].topic_name, row.start_offset, row.lag) == (topic, 4, 2)


def test_offsets_are_altered_and_deleted(member: Join, wire: Wire, group: str, topic: str) -> None:
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=6)
        for index in (0, 9)
    ]
    topics = [
        AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
        for name in (topic, "nothing")
    ]
    alter = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
    delete = DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in (topic, "nothing")
        ],
    )
    a = member()
    a.acquire()
    answer = wire.call(alter, AlterShareGroupOffsetsResponse, 0)
    assert answer.error_code == ErrorCode.NON_EMPTY_GROUP
    deleted = wire.call(delete, DeleteShareGroupOffsetsResponse, 0)
    assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP
    a.acknowledge([], epoch=-1)
    a.heartbeat(-1)
    # Kafka forgets what it knows of a group's partitions when the last connection goes.
    a.close()
    answer = wire.call(alter, AlterShareGroupOffsetsResponse, 0)
    assert answer.error_code == 0
    codes = {
        (row.topic_name, each.partition_index): each.error_code
        for row in answer.responses
        for each in row.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {
        (topic, 0): 0,
        (topic, 9): unknown,
        ("nothing", 0): unknown,
        ("nothing", 9): unknown,
    }
    assert describe_offsets(wire, group).topics[0].partitions[0].start_offset == 6
    b = member()
    assert b.acquire() == [(6, 9, 1)]
    b.acknowledge([], epoch=-1)
    b.heartbeat(-1)
    deleted = wire.call(delete, DeleteShareGroupOffsetsResponse, 0)
    assert {row.topic_name: row.error_code for row in deleted.responses} == {
        topic: 0,
        "nothing": unknown,
    }
    assert not describe_offsets(wire, group).topics


def test_offsets_of_no_group(wire: Wire, topic: str) -> None:
    assert describe_offsets(wire, "nobody").error_code in (0, ErrorCode.GROUP_ID_NOT_FOUND)
    delete = DeleteShareGroupOffsetsRequest(
        group_id="nobody", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
    )
    answer = wire.call(delete, DeleteShareGroupOffsetsResponse, 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert topic_id_of(wire, topic)
