"""Requests that produce, fetch and ask about offsets, the wrong ones above all."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from moldau._native.records import Record
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from moldau.protocol.schema import Message
from moldau.records.batch import CONTROL, TRANSACTIONAL, build_batch
from moldau.records.compression import Codec, compress
from tests.reference import records as reference

TOPICS: Final = {
    "plain": {},
    "empty": {},
    "compacted": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": "500"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "safe": {"min.insync.replicas": "2"},
    "numbered": {},
}
"""Two partitions each."""
NOW: Final = int(time.time() * 1000)
DAY: Final = 86_400_000
NOWHERE: Final = b"?" * 16
WRONG_DELTAS: Final = ([0, 0, 0], [2, 1, 0], [0, 2, 4], [0, -1, -2], [1, 2, 3], [0, 1, 1])
"""Offset deltas of three records, as no client should write them."""
COMPRESSED: Final = "produce compressed offset deltas"

Asked = tuple[str, Message, int]
"""What it is about, the request and its version."""


def script(ids: dict[str, bytes]) -> Iterator[Asked]:
    """Walk all requests, in their order; `ids` has the topics' ids."""
    yield from _produces(ids)
    yield from _sequences()
    yield from _list_offsets()
    yield from _epochs()
    yield from _fetches(ids)
    yield from _others()


def batch(count: int = 1, *, key: bytes | None = b"k", timestamp: int = NOW, **fields) -> bytes:
    """Build a client's batch."""
    return build_batch([Record(n, timestamp, key, b"v" * 20) for n in range(count)], **fields)


def numbered(deltas: Sequence[int], codec: Codec = Codec.NONE, **fields: int) -> bytes:
    """Build a batch with these offset deltas; the header says 0, 1, 2, ... unless told."""
    records = [reference.Record(delta, NOW, b"k", b"v%d" % n) for n, delta in enumerate(deltas)]
    fields = {"last_offset_delta": len(deltas) - 1, **fields}
    plain = reference.build(records, **fields)
    if codec is Codec.NONE:
        return plain
    header = reference.Header(*reference.HEADER.unpack_from(plain))
    payload = bytes(compress(codec, plain[reference.HEADER_SIZE :]))
    return reference.encode_batch(header._replace(attributes=codec), payload)


def produce(*records: bytes, topic: str = "plain", index: int = 0, **fields) -> ProduceRequest:
    """Ask to append records to a partition, more than once if there are several."""
    rows = [PartitionProduceData(index=index, records=data) for data in records]
    topic_id = fields.pop("topic_id", bytes(16))
    return ProduceRequest(
        acks=fields.pop("acks", -1),
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=rows)],
        **fields,
    )


def _damaged(position: int) -> bytes:
    data = bytearray(batch())
    data[position] ^= 9
    return bytes(data)


def _produces(ids: dict[str, bytes]) -> Iterator[Asked]:
    transactional = {
        "producer_id": 5,
        "producer_epoch": 0,
        "base_sequence": 0,
        "attributes": TRANSACTIONAL,
    }
    yield "produce", produce(batch(3)), 11
    yield "produce acks=1", produce(batch(), acks=1), 11
    yield "produce acks=2", produce(batch(), acks=2), 11
    yield "produce a partition twice", produce(batch(1), batch(5)), 11
    yield "produce nothing", produce(b""), 11
    yield "produce two batches", produce(batch() + batch()), 11
    yield "produce a wrong checksum", produce(_damaged(-1)), 11
    yield "produce a wrong magic", produce(_damaged(16)), 11
    yield "produce a base offset", produce(_damaged(7)), 11
    yield "produce a cut batch", produce(batch()[:-3]), 11
    yield "produce control records", produce(batch(attributes=CONTROL)), 11
    yield "produce without keys", produce(batch(2, key=None), topic="compacted"), 11
    yield "produce with keys", produce(batch(2), topic="compacted"), 11
    yield "produce too much", produce(batch(50), topic="small"), 11
    yield "produce for tomorrow", produce(batch(2, timestamp=NOW + DAY)), 11
    yield "produce with append time", produce(batch(2), topic="append-time"), 11
    yield "produce to one replica", produce(batch(), topic="safe"), 11
    yield "produce to no topic", produce(batch(), topic="nowhere"), 11
    yield "produce to no partition", produce(batch(), index=7), 11
    yield "produce to no internal topic", produce(batch(), topic="__consumer_offsets"), 11
    yield "produce by id", produce(batch(), topic="", topic_id=ids["plain"]), 13
    yield "produce by no id", produce(batch(), topic="", topic_id=NOWHERE), 13
    yield "produce zstd", produce(batch(codec=Codec.ZSTD)), 7
    yield "produce zstd too early", produce(batch(codec=Codec.ZSTD)), 6
    yield "produce outside of a transaction", produce(batch(**transactional)), 11
    yield from _deltas()


def _deltas() -> Iterator[Asked]:
    def sent(data: bytes) -> Message:
        return produce(data, topic="numbered")

    for deltas in WRONG_DELTAS:
        yield f"produce offset deltas {deltas}", sent(numbered(deltas)), 11
    for name, fields in (
        ("a last one too large", {"last_offset_delta": 4}),
        ("a last one too small", {"last_offset_delta": 0}),
        ("too few records", {"record_count": 4, "last_offset_delta": 3}),
        ("too many records", {"record_count": 2, "last_offset_delta": 1}),
    ):
        yield f"produce offset deltas with {name}", sent(numbered([0, 0, 0], **fields)), 11
        yield f"produce compressed with {name}", sent(numbered([0, 0, 0], Codec.GZIP, **fields)), 11
    for number, sequence in enumerate((0, 3, 3, 7, 6)):
        producer = {"producer_id": 99, "producer_epoch": 0, "base_sequence": sequence}
        yield f"produce {number}. of a producer", sent(numbered([0, 0, 0], **producer)), 11
    for deltas in WRONG_DELTAS:
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
            yield f"{COMPRESSED} {deltas} {codec.name}", sent(numbered(deltas, codec)), 11


def _sequences() -> Iterator[Asked]:
    def sent(sequence: int, epoch: int = 0, count: int = 1) -> Message:
        data = batch(count, producer_id=77, producer_epoch=epoch, base_sequence=sequence)
        return produce(data, index=1)

    yield "sequence 5, the first", sent(5), 11
    yield "sequence 6", sent(6), 11
    yield "sequence 5 again", sent(5), 11
    yield "sequence 9", sent(9), 11
    yield "sequence 3 of epoch 1", sent(3, 1), 11
    yield "sequence 0 of epoch 1", sent(0, 1, 3), 11
    yield "sequence 7 of epoch 0", sent(7), 11
    yield "sequence -1", sent(-1, 1), 11


def _list_offsets() -> Iterator[Asked]:
    def asked(timestamp: int, topic: str = "plain", **fields) -> Message:
        partition = ListOffsetsPartition(
            partition_index=fields.pop("index", 0),
            timestamp=timestamp,
            current_leader_epoch=fields.pop("epoch", -1),
        )
        fields.setdefault("replica_id", -1)
        return ListOffsetsRequest(
            topics=[ListOffsetsTopic(name=topic, partitions=[partition])], **fields
        )

    for timestamp in (*range(-7, 0), NOW - DAY, NOW, NOW + DAY):
        name = timestamp if timestamp < 0 else f"today{timestamp - NOW:+}"
        yield f"offset {name}", asked(timestamp), 11
        yield f"offset {name} in an empty log", asked(timestamp, "empty"), 11
        yield f"offset {name}, read committed", asked(timestamp, isolation_level=1), 11
    for timestamp, version in ((-3, 6), (-4, 7), (-5, 8), (-6, 10), (-1, 1)):
        yield f"offset {timestamp} in v{version}", asked(timestamp), version
    yield "offset of another epoch", asked(-1, epoch=9), 11
    yield "offset for debugging", asked(-1, replica_id=-2), 11
    yield "offset for a follower", asked(-1, replica_id=5), 11
    yield "offset in no topic", asked(-1, "nowhere"), 11
    yield "offset in no partition", asked(-1, index=7), 11


def _epochs() -> Iterator[Asked]:
    for topic in ("plain", "empty", "nowhere"):
        for epoch, current in ((0, -1), (1, -1), (-1, -1), (0, 0), (0, 3)):
            partition = OffsetForLeaderPartition(
                partition=0, leader_epoch=epoch, current_leader_epoch=current
            )
            topics = [OffsetForLeaderTopic(topic=topic, partitions=[partition])]
            request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
            yield f"end of epoch {epoch} of {current} in {topic}", request, 4


def wanted(index: int = 0, offset: int = 0, **fields) -> FetchPartition:
    """Ask for a partition's records."""
    fields.setdefault("partition_max_bytes", 1 << 20)
    return FetchPartition(partition=index, fetch_offset=offset, **fields)


def fetch(topic_id: bytes, *partitions: FetchPartition, topic: str = "", **fields) -> FetchRequest:
    """Ask for records, without a session unless it says so."""
    fields = {"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1, **fields}
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)]
    return FetchRequest(topics=topics, **fields)


def _fetches(ids: dict[str, bytes]) -> Iterator[Asked]:
    plain = ids["plain"]
    for version in (4, 9, 12):
        yield f"fetch v{version}", fetch(bytes(16), wanted(), topic="plain"), version
    yield "fetch of no topic", fetch(bytes(16), wanted(), topic="nowhere"), 12
    yield "fetch by no id", fetch(NOWHERE, wanted()), 18
    for isolation in (0, 1):
        fields = {"isolation_level": isolation}
        yield f"fetch, isolation {isolation}", fetch(plain, wanted(1), **fields), 18
        yield f"fetch at the end, {isolation}", fetch(ids["empty"], wanted(), **fields), 18
        yield f"fetch behind it, {isolation}", fetch(plain, wanted(1, 999), **fields), 18
    yield "fetch before it", fetch(plain, wanted(0, -1)), 18
    yield "fetch of no partition", fetch(plain, wanted(7)), 18
    yield "fetch of some partitions", fetch(plain, wanted(7), wanted(0), wanted(1)), 18
    yield "fetch of another epoch", fetch(plain, wanted(current_leader_epoch=9)), 18
    yield "fetch after an epoch", fetch(plain, wanted(1, 1, last_fetched_epoch=0)), 18
    yield "fetch after no epoch", fetch(plain, wanted(1, 1, last_fetched_epoch=7)), 18
    follower = ReplicaState(replica_id=9, replica_epoch=1)
    yield "fetch by a follower", fetch(plain, wanted(), replica_state=follower), 18
    yield "fetch by a follower, v14", fetch(plain, wanted(), replica_id=9), 14
    yield "fetch of no bytes", fetch(plain, wanted(partition_max_bytes=0)), 18
    yield "fetch of no bytes at all", fetch(plain, wanted(0), wanted(1), max_bytes=0), 18
    yield "fetch with no session", fetch(plain, session_id=77, session_epoch=3), 18


def sessions(ids: dict[str, bytes]) -> Iterator[Asked]:
    """Walk the requests of one session; its id is to be filled in."""
    plain = ids["plain"]
    yield "session", fetch(plain, wanted(0), wanted(1), session_epoch=0), 18
    yield "session, nothing new", fetch(plain, wanted(0, 3), wanted(1, 2), session_epoch=1), 18
    yield "session, from there on", fetch(plain, session_epoch=2), 18
    yield "session, at the end", fetch(plain, wanted(1, 5), session_epoch=3), 18
    forgotten = [ForgottenTopic(topic_id=plain, partitions=[0])]
    request = fetch(plain, session_epoch=4, forgotten_topics_data=forgotten)
    yield "session, forgotten", request, 18
    yield "session, wrong epoch", fetch(plain, session_epoch=9), 18
    yield "session, by name", fetch(bytes(16), session_epoch=5, topic="plain"), 12
    yield "session, closed", fetch(plain, wanted(1), session_epoch=-1), 18
    yield "session, gone", fetch(plain, session_epoch=5), 18


def _others() -> Iterator[Asked]:
    for topic, index in (("plain", 1), ("empty", 0), ("nowhere", 0), ("plain", 7)):
        topics = [TopicRequest(name=topic, partition_indexes=[index])]
        yield f"producers of {topic}-{index}", DescribeProducersRequest(topics=topics), 0
    for topic, offset in (
        *(("plain", offset) for offset in (2, 1, -2, 999, -1)),
        *(("compacted", 1), ("nowhere", 0), ("empty", 0), ("empty", 1)),
    ):
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name=topic, partitions=[partition])]
        request = DeleteRecordsRequest(timeout_ms=5000, topics=topics)
        yield f"delete before {offset} in {topic}", request, 2
    for name, fields in (
        ("half an id", {"producer_id": 5}),
        ("an empty name", {"transactional_id": ""}),
        ("a long transaction", {"transactional_id": "t", "transaction_timeout_ms": 1 << 30}),
        ("no transaction", {"transactional_id": "t", "transaction_timeout_ms": 0}),
    ):
        request = InitProducerIdRequest(**{"transactional_id": None, **fields})
        yield f"init producer with {name}", request, 5
