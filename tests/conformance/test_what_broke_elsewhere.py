"""What broke in another broker when real suites met it, each by its name."""

import pytest

from moldau._native.records import Record, read_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import encode_request
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from moldau.records.batch import build_batch
from moldau.records.compression import Codec
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5


def records(count: int, step_ms: int = 1000, key: bytes | None = None) -> list[Record]:
    return [Record(n, TIME + n * step_ms, key, b"value %d" % n, []) for n in range(count)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("bytes_max", [1, 1 << 20])
def test_a_fetch_inside_a_batch_returns_the_whole_batch(
    wire: Wire, codec: Codec, bytes_max: int
) -> None:
    topic = f"broke-mid-batch-{codec.name}-{bytes_max}"
    wire.create_topic(topic)
    data = bytes(build_batch(records(100), codec=codec))
    for _ in range(3):
        assert wire.produce(topic, data).error_code == 0
    fetched = wire.fetch(topic, 150, bytes_max=bytes_max)
    batches = read_batches(bytes(fetched.records or b""))
    assert (batches[0].base_offset, batches[0].last_offset) == (100, 199)
    assert batches[0].size == len(data)
    # One batch always comes whole, however little was asked for.
    assert len(batches) == (1 if bytes_max == 1 else 2)
    assert fetched.high_watermark == 300


def test_list_offsets_by_timestamp(wire: Wire) -> None:
    topic = "broke-by-time"
    wire.create_topic(topic)
    late = [Record(n, TIME + 500 + (9 - n) * 1000, None, b"v", []) for n in range(10)]
    wire.produce(topic, records(10))
    wire.produce(topic, bytes(build_batch(late, codec=Codec.GZIP)))
    found = {
        asked: (answer.offset, answer.timestamp)
        for asked in (TIME - 1, TIME + 4000, TIME + 4001, TIME + 9001, TIME + 9501, -3)
        if (answer := wire.list_offset(topic, asked)).error_code == 0
    }
    assert found == {
        TIME - 1: (0, TIME),
        TIME + 4000: (4, TIME + 4000),
        TIME + 4001: (5, TIME + 5000),
        TIME + 9001: (10, TIME + 9500),  # the first that is late enough, inside a batch
        TIME + 9501: (-1, -1),
        -3: (10, TIME + 9500),  # the greatest timestamp
    }


def test_max_message_bytes_is_enforced(wire: Wire) -> None:
    topic = "broke-max-message-bytes"
    wire.create_topic(topic, configs={"max.message.bytes": "1000"})
    room = 1000 - len(build_batch([Record(0, TIME, None, b"", [])])) - 2  # longer varints
    fits, not_quite = ([Record(0, TIME, None, bytes(size), [])] for size in (room, room + 1))
    assert len(build_batch(fits)) == 1000
    assert wire.produce(topic, not_quite).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(topic, fits).error_code == 0
    assert wire.list_offset(topic, -1).offset == 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_keyless_records_on_a_compacted_topic_are_refused(wire: Wire, codec: Codec) -> None:
    topic = f"broke-keyless-{codec.name}"
    wire.create_topic(topic, configs={"cleanup.policy": "compact"})
    mixed = [*records(2, key=b"key"), Record(2, TIME, None, b"v", [])]
    refused = wire.produce(topic, bytes(build_batch(mixed, codec=codec)))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [2]
    assert refused.error_message
    taken = wire.produce(topic, bytes(build_batch(records(2, key=b"key"), codec=codec)))
    assert (taken.error_code, taken.base_offset) == (0, 0)


def test_create_partitions_answers_for_every_topic(wire: Wire) -> None:
    wire.create_topic("broke-partitions", partitions=2)
    wanted = {"broke-partitions": 3, "broke-no-such-topic": 2}
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=wanted[name], assignments=None)
            for name in wanted
        ],
        timeout_ms=30_000,
    )
    for first in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):  # 3 are there the second time
        answer = wire.call(request, CreatePartitionsResponse, 3)
        assert {result.name: result.error_code for result in answer.results} == {
            "broke-partitions": first,
            "broke-no-such-topic": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


def describe(wire: Wire, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
    resource.configuration_keys = None
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    [result] = wire.call(request, DescribeConfigsResponse, 4).results
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def test_describe_configs_shows_defaults(wire: Wire) -> None:
    wire.create_topic("broke-configs", configs={"segment.bytes": "5000000"})
    configs = describe(wire, TOPIC_RESOURCE, "broke-configs")
    shown = {name: (configs[name].value, configs[name].config_source) for name in configs}
    assert len(shown) > 25
    assert shown["segment.bytes"] == ("5000000", DYNAMIC_TOPIC)
    assert shown["cleanup.policy"] == ("delete", DEFAULT)
    assert shown["max.message.bytes"] == ("1048588", DEFAULT)
    synonyms = [(one.name, one.value, one.source) for one in configs["segment.bytes"].synonyms]
    assert synonyms == [
        ("segment.bytes", "5000000", DYNAMIC_TOPIC),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    [described] = metadata(wire, "broke-configs").brokers
    of_broker = describe(wire, BROKER_RESOURCE, str(described.node_id))
    assert (of_broker["num.partitions"].value, of_broker["num.partitions"].config_source) == (
        "1",
        DEFAULT,
    )
    assert of_broker["log.dirs"].value
    assert of_broker["log.dirs"].config_source in (STATIC_BROKER, DEFAULT)


def metadata(wire: Wire, topic: str, *, create: bool = False) -> MetadataResponse:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=create
    )
    return wire.call(request, MetadataResponse, 12)


def test_bytes_behind_a_request_are_ignored(wire: Wire) -> None:
    """librdkafka 2.16 writes four bytes for the null of Metadata v13, where one is enough."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    frame = b"".join(encode_request(request, 13, correlation_id=1, client_id="wire"))
    size = len(frame) - 4 + 3
    wire.correlation_id = 1
    wire.socket.sendall(size.to_bytes(4, "big") + frame[4:] + b"\1\0\0")
    assert wire.receive(MetadataResponse, 13).brokers


def test_metadata_creates_a_topic_when_asked_to(wire: Wire) -> None:
    topic = "broke-auto-created"

    def ask(*, create: bool) -> MetadataResponseTopic:
        [described] = metadata(wire, topic, create=create).topics
        return described

    assert ask(create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = ask(create=True)
    assert asked.error_code in (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # as Kafka, which creates it in the background
        ErrorCode.LEADER_NOT_AVAILABLE,
    )
    wait_for(lambda: ask(create=False).error_code == 0)
    described = ask(create=False)
    assert [partition.leader_id >= 0 for partition in described.partitions] == [True]
    assert any(described.topic_id)
    wait_for(lambda: wire.produce(topic, records(1)).error_code == 0)
    assert metadata(wire, "broke:bad name", create=True).topics[0].error_code == (
        ErrorCode.INVALID_TOPIC_EXCEPTION
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [(None, ""), ("", ""), ("text", "text"), ("grüße \U0001f600", "grüße \U0001f600")],
)
def test_offset_commit_metadata_round_trip(wire: Wire, said: str | None, told: str) -> None:
    topic, group = "broke-metadata", "broke-metadata"
    wire.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), MetadataResponse, 9)
    row = OffsetCommitRequestPartition(committed_offset=3, committed_metadata=said)
    commit = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[row])]
    )

    def is_committed() -> bool:
        # The coordinator's topic and ours may be on their way.
        wire.call(FindCoordinatorRequest(key=group), FindCoordinatorResponse, 1)
        answer = wire.call(commit, OffsetCommitResponse, 8)
        return answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    wait_for(is_committed)
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    fetch = OffsetFetchRequest(group_id=group, topics=asked)
    (found,) = wire.call(fetch, OffsetFetchResponse, 7).topics[0].partitions
    assert (found.committed_offset, found.metadata) == (3, told)
