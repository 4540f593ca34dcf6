"""What broke in another broker when real suites met it: groups and transactions, by their names."""

import threading

import confluent_kafka
import pytest

from moldau._native.records import read_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from moldau.protocol.messages.offset_commit import OffsetCommitResponse
from moldau.protocol.messages.offset_fetch import OffsetFetchResponse
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.records.batch import read_records
from tests.conformance.answers.requests import commit, fetch_offsets, join, sync
from tests.conformance.brokers import RunningBroker
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
SECONDS_MAX = 60
COORDINATOR_IS_COMING = {14, 15, 16}
GROUP_KEY, TRANSACTION_KEY = 0, 1


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


def find_coordinator(wire: Wire, key_type: int) -> None:
    """Whoever asks for a coordinator first lets its topic be created."""
    request = FindCoordinatorRequest(key_type=key_type, key="any")
    wait_for(lambda: not wire.call(request, FindCoordinatorResponse, 3).error_code)


@pytest.mark.parametrize("metadata", ["", "plain", "ž ∞", "x" * 4096, '{"a": [1, 2]}'])
def test_offset_commit_metadata_comes_back(wire: Wire, metadata: str) -> None:
    find_coordinator(wire, GROUP_KEY)
    topic = f"broke-metadata-{len(metadata)}"
    wire.create_topic(topic)
    request = commit(topic, {topic: {0: 17}}, metadata=metadata, leader_epoch=0)

    def committed() -> int:
        return wire.call(request, OffsetCommitResponse, 8).topics[0].partitions[0].error_code

    # 4096 bytes are the limit, and not characters.
    size = len(metadata.encode())
    wait_for(lambda: committed() not in COORDINATOR_IS_COMING)
    assert committed() == (0 if size <= 4096 else ErrorCode.OFFSET_METADATA_TOO_LARGE)
    for version in (1, 5, 7):
        answer = wire.call(fetch_offsets(topic, {topic: [0]}), OffsetFetchResponse, version)
        [row] = answer.topics[0].partitions
        assert (row.committed_offset, row.metadata, row.error_code) == (17, metadata, 0)


def test_no_unknown_member_while_many_rebalance(broker: RunningBroker, wire: Wire) -> None:
    """Members that join at once, over and over, are never told that they are unknown."""
    find_coordinator(wire, GROUP_KEY)
    group = "broke-concurrent-rebalances"
    wire.create_topic("broke-rebalances", 8)
    told: list[tuple[str, int]] = []
    generations: list[int] = []

    def live(rounds: int) -> None:
        with Wire(broker.host, broker.port) as mine:
            member_id, done = "", 0
            while done < rounds:
                joined = mine.call(join(group, member_id), JoinGroupResponse, 9)
                if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                    member_id = joined.member_id
                    continue
                if joined.error_code in COORDINATOR_IS_COMING:
                    continue
                told.append(("join", joined.error_code))
                shares = {member.member_id: b"" for member in joined.members}
                request = sync(group, member_id, joined.generation_id, shares)
                synced = mine.call(request, SyncGroupResponse, 5)
                told.append(("sync", synced.error_code))
                beat = HeartbeatRequest(
                    group_id=group, member_id=member_id, generation_id=joined.generation_id
                )
                told.append(("beat", mine.call(beat, HeartbeatResponse, 4).error_code))
                generations.append(joined.generation_id)
                done += 1
            leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
            mine.call(leave, LeaveGroupResponse, 5)

    threads = [threading.Thread(target=live, args=(10,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    allowed = {
        "join": {0},
        "sync": {0, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION},
        "beat": {0, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION},
    }
    assert not [(what, code) for what, code in told if code not in allowed[what]]
    assert len(generations) == 80


def transactional(broker: RunningBroker, name: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 2}
    )
    producer.init_transactions(SECONDS_MAX)
    return producer


def fetch(wire: Wire, topic: str, isolation: int) -> tuple[list[bytes], int, int]:
    """Fetch once; return values without those of aborted transactions, LSO and high watermark.

    As a client does: from an aborted transaction's first offset to its marker, they are dropped.
    """
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    [row] = wire.call(request, FetchResponse, 12).responses[0].partitions
    aborted = sorted(
        (each.first_offset, each.producer_id) for each in row.aborted_transactions or ()
    )
    values: list[bytes] = []
    dropping: set[int] = set()
    data = bytes(row.records or b"")
    for batch in read_batches(data):
        while aborted and aborted[0][0] <= batch.last_offset:
            dropping.add(aborted.pop(0)[1])
        if batch.is_control:
            dropping.discard(batch.producer_id)
        elif batch.producer_id not in dropping:
            values += [record.value for record in read_records(data, batch)]
    return values, row.last_stable_offset, row.high_watermark


def test_aborted_records_are_invisible_to_read_committed(broker: RunningBroker, wire: Wire) -> None:
    topic = "broke-aborted"
    wire.create_topic(topic)
    first, second = (transactional(broker, f"{topic}-{n}") for n in range(2))
    # Two transactions that overlap, one of which is aborted; then one that stays open.
    for producer in (first, second):
        producer.begin_transaction()
    for n in range(3):
        first.produce(topic, b"kept %d" % n)
        first.flush(SECONDS_MAX)
        second.produce(topic, b"gone %d" % n)
        second.flush(SECONDS_MAX)
    second.abort_transaction(SECONDS_MAX)
    assert fetch(wire, topic, 1)[0] == []  # the first is open, and everything is behind it
    first.commit_transaction(SECONDS_MAX)
    second.begin_transaction()
    second.produce(topic, b"open")
    second.flush(SECONDS_MAX)
    kept = [b"kept 0", b"kept 1", b"kept 2"]
    wait_for(lambda: fetch(wire, topic, 1)[0] == kept)
    values, stable_offset, high_watermark = fetch(wire, topic, 1)
    # Six records and two markers, and the open one.
    assert (values, stable_offset, high_watermark) == (kept, 8, 9)
    assert b"open" in fetch(wire, topic, 0)[0]
    second.abort_transaction(SECONDS_MAX)
    wait_for(lambda: fetch(wire, topic, 1)[1] == 10)
    assert fetch(wire, topic, 1)[0] == kept


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (1, 0),
        (60_000, 0),
        (900_000, 0),
        (900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (-1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_transaction_timeouts_are_validated(wire: Wire, timeout_ms: int, error: int) -> None:
    find_coordinator(wire, TRANSACTION_KEY)
    request = InitProducerIdRequest(
        transactional_id=f"broke-timeout-{timeout_ms}", transaction_timeout_ms=timeout_ms
    )

    def ask() -> int:
        return wire.call(request, InitProducerIdResponse, 4).error_code

    wait_for(lambda: ask() not in COORDINATOR_IS_COMING)
    assert ask() == error


def test_end_txn_has_the_versions_that_librdkafka_asks_for(
    broker: RunningBroker, wire: Wire
) -> None:
    """librdkafka asks for v1, the Java client for v5."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = wire.call(request, ApiVersionsResponse, 3)
    [row] = [row for row in answer.api_keys if row.api_key == EndTxnRequest._api_key]
    assert row.min_version <= 1
    assert row.max_version >= 5
    topic = "broke-end-txn"
    wire.create_topic(topic)
    producer = transactional(broker, topic)
    producer.begin_transaction()
    producer.produce(topic, b"kept")
    producer.commit_transaction(SECONDS_MAX)
    wait_for(lambda: fetch(wire, topic, 1)[0] == [b"kept"])
