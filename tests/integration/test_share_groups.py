"""Share groups over time: locks that end, members that go, brokers that start again."""

import time
from collections.abc import Iterator

import pytest

from moldau._native.records import Record
from moldau.broker.shares import fetch as fetch_module
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.protocol.messages.share_fetch import ShareFetchResponse
from moldau.testing import Broker
from tests.share_members import ShareMember, acquired_of, configure, records_of, topic_id_of
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
ACCEPT, RELEASE, REJECT = 1, 2, 3
GROUP = "g"


@pytest.fixture
def broker() -> Iterator[Broker]:
    # Dead letters come with share.version 2.
    with Broker(settings={"metadata.version": "4.4"}) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = broker.topic()
    with Wire(broker.host, broker.port) as wire:
        configure(wire, GROUP, share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
        produce(wire, name, 10)
    return name


def produce(wire: Wire, topic: str, count: int) -> None:
    records = [Record(n, TIME + n, None, b"value %d" % n, []) for n in range(count)]
    assert wire.produce(topic, records).error_code == 0


def joined(broker: Broker, topic: str) -> ShareMember:
    member = ShareMember(broker.host, broker.port, GROUP, topic)
    member.join()
    return member


def test_a_lock_that_ends_lets_others_have_the_records(broker: Broker, topic: str) -> None:
    a, b = joined(broker, topic), joined(broker, topic)
    assert a.acquire() == [(0, 9, 1)]
    b.fetch(wait_ms=1)
    request = b.fetch_request(wait_ms=60_000)
    b.wire.send(request, 2)
    broker.clock.advance(31)
    answer = b.wire.receive(ShareFetchResponse, 2)
    [row] = answer.responses[0].partitions
    assert acquired_of(row) == [(0, 9, 2)]
    assert a.outcome([(0, 9, [ACCEPT])]) == ErrorCode.INVALID_RECORD_STATE
    for member in (a, b):
        member.close()


def test_what_is_done_is_done_after_a_restart(broker: Broker, topic: str) -> None:
    a = joined(broker, topic)
    a.acquire()
    assert a.outcome([(0, 9, [ACCEPT] * 5 + [RELEASE] + [ACCEPT] * 3 + [RELEASE])]) == 0
    broker.restart()
    a.close()
    b = joined(broker, topic)
    assert b.acquire() == [(5, 5, 2), (9, 9, 2)]
    b.close()


def test_a_group_begins_where_it_first_looked(broker: Broker, topic: str) -> None:
    """Also if the broker starts again before anything is acknowledged."""
    with Wire(broker.host, broker.port) as wire:
        configure(wire, GROUP, share_auto_offset_reset="latest")
        a = joined(broker, topic)
        assert not a.fetch(wait_ms=1).responses[0].partitions[0].acquired_records
        wait_for(lambda: not a.fetch(wait_ms=1).responses)
        produce(wire, topic, 3)
    assert a.acquire() == [(10, 12, 1)]
    broker.restart()
    a.close()
    b = joined(broker, topic)
    # Whoever had them was gone when the broker stopped: that is the second delivery.
    assert b.acquire() == [(10, 12, 2)]
    b.close()


@pytest.mark.parametrize("is_hot", [True, False])
def test_a_backlog_is_taken_in_parts(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch, *, is_hot: bool
) -> None:
    """By the kernel and by the long way, which find the same."""
    if not is_hot:
        monkeypatch.setattr(fetch_module, "try_hot", lambda *_: None)
    a = joined(broker, topic)
    with Wire(broker.host, broker.port) as wire:
        for _ in range(5):
            produce(wire, topic, 3)
    assert a.acquire(records_max=4, is_strict=True) == [(0, 3, 1)]
    assert a.acquire(records_max=4, is_strict=True) == [(4, 7, 1)]
    assert a.outcome([(0, 3, [RELEASE])]) == 0
    assert a.acquire(records_max=2, is_strict=True) == [(0, 1, 2)]
    assert a.acquire(records_max=2) == [(2, 3, 2)]
    # The batch that has the last record that is wanted comes whole.
    answer = a.fetch(records_max=4)
    [row] = answer.responses[0].partitions
    assert acquired_of(row) == [(8, 12, 1)]
    assert [record.offset for record in records_of(row)] == [8, 9, 10, 11, 12]
    assert a.acquire(records_max=3) == [(13, 15, 1)]
    assert a.acquire(records_max=500) == [(16, 24, 1)]
    a.close()


def test_a_fetch_waits_for_records(broker: Broker, topic: str) -> None:
    a = joined(broker, topic)
    a.acquire()
    a.wire.send(a.fetch_request(wait_ms=60_000), 2)
    with Wire(broker.host, broker.port) as wire:
        produce(wire, topic, 2)
    answer = a.wire.receive(ShareFetchResponse, 2)
    [row] = answer.responses[0].partitions
    assert acquired_of(row) == [(10, 11, 1)]
    a.close()


def test_a_fetch_that_waits_does_not_hold_up_the_end(broker: Broker, topic: str) -> None:
    a = joined(broker, topic)
    a.acquire()
    a.wire.send(a.fetch_request(wait_ms=600_000), 2)
    # Somebody else is answered behind it: it waits by now.
    with Wire(broker.host, broker.port) as wire:
        assert topic_id_of(wire, topic)
    broker.stop()
    assert not a.wire.receive(ShareFetchResponse, 2).responses
    a.close()


def test_a_member_that_is_not_heard_of_is_given_up(broker: Broker, topic: str) -> None:
    a = joined(broker, topic)
    broker.clock.advance(46)
    assert a.heartbeat(a.epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    a.close()


def test_a_topic_that_is_deleted_and_made_again(broker: Broker, topic: str) -> None:
    a = joined(broker, topic)
    a.acquire()
    with Wire(broker.host, broker.port) as wire:
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
        assert wire.call(request, DeleteTopicsResponse, 5).responses[0].error_code == 0
        answer = a.fetch(wait_ms=1)
        [row] = answer.responses[0].partitions
        assert row.error_code in (
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
        assert a.outcome([(0, 9, [ACCEPT])]) == ErrorCode.UNKNOWN_TOPIC_ID
        a.heartbeat(-1)
        a.close()
        broker.create_topic(topic)
        produce(wire, topic, 4)
    b = joined(broker, topic)
    assert b.acquire() == [(0, 3, 1)]
    b.close()


def test_sessions_have_a_limit(broker: Broker, topic: str) -> None:
    broker.settings(group_share_max_share_sessions=1)
    a, b = joined(broker, topic), joined(broker, topic)
    a.acquire()
    assert b.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    a.close()
    wait_for(lambda: b.fetch(wait_ms=1).error_code == 0)
    b.close()


@pytest.mark.parametrize("is_copied", [False, True])
def test_dead_letters(broker: Broker, topic: str, *, is_copied: bool) -> None:
    letters = broker.create_topic(
        "dlq.letters", configs={"errors.deadletterqueue.group.enable": True}
    )
    with Wire(broker.host, broker.port) as wire:
        configure(
            wire,
            GROUP,
            errors_deadletterqueue_topic_name=letters,
            errors_deadletterqueue_copy_record_enable=str(is_copied).lower(),
            share_delivery_count_limit="2",
        )
        a = joined(broker, topic)
        a.acquire()
        assert a.outcome([(0, 9, [REJECT, *[ACCEPT] * 8, RELEASE])]) == 0
        assert a.acquire() == [(9, 9, 2)]
        broker.clock.advance(31)
        _, found = wire.read(letters, count=2)
    headers = [
        {name.removeprefix("__dlq.errors."): bytes(value) for name, value in each.headers}
        for each in found
    ]
    common = {"topic": topic.encode(), "partition": b"0", "group": GROUP.encode()}
    rejected = {"offset": b"0", "delivery.count": b"1", "message": b"Offset rejected by client."}
    exceeded = {
        "offset": b"9",
        "delivery.count": b"2",
        "message": b"Offset delivery count exceeded the threshold.",
    }
    assert headers == [common | rejected, common | exceeded]
    values = [None if each.value is None else bytes(each.value) for each in found]
    assert values == ([b"value 0", b"value 9"] if is_copied else [None, None])
    a.close()


def test_dead_letters_that_nobody_takes(broker: Broker, topic: str) -> None:
    """A topic that is not meant for them gets none, and the group goes on."""
    letters = broker.create_topic("dlq.closed")
    with Wire(broker.host, broker.port) as wire:
        configure(wire, GROUP, errors_deadletterqueue_topic_name=letters)
        a = joined(broker, topic)
        a.acquire()
        assert a.outcome([(0, 9, [REJECT])]) == 0
        produce(wire, topic, 1)
        assert a.acquire() == [(10, 10, 1)]
        assert wire.list_offset(letters, -1).offset == 0
    a.close()


def test_a_topic_for_dead_letters_is_made() -> None:
    letters = "dlq.made"
    settings = {
        "metadata.version": "4.4",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
    }
    with Broker(settings=settings) as broker, Wire(broker.host, broker.port) as wire:
        topic = broker.topic()
        produce(wire, topic, 1)
        configure(
            wire,
            GROUP,
            share_auto_offset_reset="earliest",
            errors_deadletterqueue_topic_name=letters,
        )
        a = joined(broker, topic)
        a.acquire()
        assert a.outcome([(0, 0, [REJECT])]) == 0
        a.close()
        while letters not in broker.topics() or not wire.list_offset(letters, -1).offset:
            time.sleep(0.01)
        _, found = wire.read(letters, count=1)
        headers = {name: bytes(value) for name, value in found[0].headers}
        assert headers["__dlq.errors.offset"] == b"0"


def test_a_cluster_without_share_groups() -> None:
    with Broker(settings={"metadata.version": "3.9"}) as broker:
        name = broker.topic()
        member = ShareMember(broker.host, broker.port, GROUP, name)
        assert member.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert member.heartbeat(0, [name]).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert member.acknowledge([], epoch=1).error_code == ErrorCode.UNSUPPORTED_VERSION
        member.close()
