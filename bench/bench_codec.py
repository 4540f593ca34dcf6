"""Codec speed against kio, and what importing the protocol costs."""

import importlib
import io
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer

from moldau.protocol.messages import fetch, metadata, produce
from moldau.protocol.schema import Message

ROUNDS = 7
ROUND_SECONDS = 0.05
IMPORT_MS_MAX = 100
RECORDS = bytes(range(256)) * 4
HOST = "broker-1.moldau.example"


class Row(NamedTuple):
    """One line of the table: how many times less than theirs ours is, and what it has to be."""

    name: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    goal: float


def produce_exchange() -> tuple[Message, Message, int]:
    """One partition in, one partition out."""
    partition = produce.PartitionProduceData(index=3, records=RECORDS)
    topic = produce.TopicProduceData(name="orders", partition_data=[partition])
    request = produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    answer = produce.PartitionProduceResponse(index=3, base_offset=123_456, log_start_offset=0)
    answers = produce.TopicProduceResponse(name="orders", partition_responses=[answer])
    return request, produce.ProduceResponse(responses=[answers]), 11


def fetch_exchange(partition_count: int) -> tuple[Message, Message, int]:
    """So many partitions of one topic, a kilobyte of records each."""
    asked = [
        fetch.FetchPartition(partition=i, fetch_offset=1_000_000 + i, partition_max_bytes=1 << 20)
        for i in range(partition_count)
    ]
    topic_id = bytes(range(16))
    request = fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[fetch.FetchTopic(topic_id=topic_id, partitions=asked)],
    )
    given = [
        fetch.PartitionData(
            partition_index=i,
            high_watermark=1_000_100 + i,
            last_stable_offset=1_000_100 + i,
            log_start_offset=0,
            aborted_transactions=None,
            records=RECORDS,
        )
        for i in range(partition_count)
    ]
    topic = fetch.FetchableTopicResponse(topic_id=topic_id, partitions=given)
    return request, fetch.FetchResponse(session_id=7, responses=[topic]), 16


def metadata_exchange() -> tuple[Message, Message, int]:
    """Ten topics of six partitions on three brokers."""
    names = [f"topic-{i}" for i in range(10)]
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in names]
    )
    partitions = [
        metadata.MetadataResponsePartition(
            partition_index=i,
            leader_id=i % 3,
            leader_epoch=5,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for i in range(6)
    ]
    response = metadata.MetadataResponse(
        brokers=[
            metadata.MetadataResponseBroker(node_id=i, host=HOST, port=9092) for i in range(3)
        ],
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        controller_id=1,
        topics=[
            metadata.MetadataResponseTopic(
                name=name, topic_id=bytes(range(16)), partitions=partitions
            )
            for name in names
        ],
    )
    return request, response, 12


def their_codec(message: Message, version: int) -> tuple[Any, Callable[[bytes], object]]:
    """Return kio's instance of the same message, and its reader."""
    api, kind = type(message).__module__.rsplit(".", 1)[1], type(message).__name__
    side = "request" if kind.endswith("Request") else "response"
    module = importlib.import_module(f"kio.schema.{api}.v{version}.{side}")
    reader = entity_reader(getattr(module, kind))
    instance, _ = reader(message.encode(version), 0)
    return instance, lambda data: reader(data, 0)


def exchange_row(name: str, request: Message, response: Message, version: int) -> Row:
    """Measure a server's work: decode the request, encode the response."""
    encoded = request.encode(version)
    decode, encode = request.plan(version).decode, response.plan(version).encode_chunks
    _, their_decode = their_codec(request, version)
    their_response, _ = their_codec(response, version)
    their_encode = entity_writer(type(their_response))

    def ours() -> None:
        decode(encoded)
        encode(response)

    def theirs() -> None:
        their_decode(encoded)
        their_encode(io.BytesIO(), their_response)

    return ratio_row(name, ours, theirs, goal=8)


def ratio_row(
    name: str, ours: Callable[[], None], theirs: Callable[[], None], *, goal: float
) -> Row:
    """Time both in turns, so that a noisy neighbour slows both, and take the medians."""
    counts = [calibrate(function) for function in (ours, theirs)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for function, count, results in zip((ours, theirs), counts, times, strict=True):
            results.append(timed(function, count) / count * 1e6)
    our_us, their_us = statistics.median(times[0]), statistics.median(times[1])
    return Row(name, our_us, their_us, "us", their_us / our_us, goal)


def calibrate(function: Callable[[], None]) -> int:
    """Return how many calls fill a round."""
    function()
    count = 1
    while (seconds := timed(function, count)) < ROUND_SECONDS / 4:
        count *= 2
    return max(1, round(count * ROUND_SECONDS / seconds))


def timed(function: Callable[[], None], count: int) -> float:
    """Return the CPU seconds that `count` calls take."""
    started = time.process_time()
    for _ in range(count):
        function()
    return time.process_time() - started


# What a broker loads to answer a first client: everything but the messages of rarer APIs.
IMPORTS = """
import asyncio, importlib, pkgutil, time
try:
    import uvloop
except ImportError:
    pass
started = time.process_time()
import moldau
FIRST = {"headers", "api_versions", "metadata", "sasl_handshake", "sasl_authenticate", "produce",
         "fetch", "list_offsets", "find_coordinator", "init_producer_id", "offset_for_leader_epoch"}
def load(package):
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        base, _, name = info.name.rpartition(".")
        if base in ("moldau.protocol.messages", "moldau.protocol.stored") and name not in FIRST:
            continue
        if base == "moldau" and name == "cli":
            continue
        module = importlib.import_module(info.name)
        if info.ispkg:
            load(module)
load(moldau)
print(time.process_time() - started)
"""


def import_row() -> Row:
    """Measure CPU time in fresh processes against its budget; more than the least is noise."""
    command = [sys.executable, "-c", IMPORTS]
    ours_ms = min(float(subprocess.check_output(command)) * 1e3 for _ in range(ROUNDS))
    name = "import of what a broker needs, against its budget"
    return Row(name, ours_ms, IMPORT_MS_MAX, "ms", IMPORT_MS_MAX / ours_ms, 1)


def rows() -> list[Row]:
    """Measure everything."""
    return [
        exchange_row("Produce v11, 1 partition", *produce_exchange()),
        exchange_row("Fetch v16, 1 partition", *fetch_exchange(1)),
        exchange_row("Fetch v16, 1000 partitions", *fetch_exchange(1000)),
        exchange_row("Metadata v12, 10 topics x 6 partitions", *metadata_exchange()),
        import_row(),
    ]


if __name__ == "__main__":
    for row in rows():
        print(f"{row.name:50} {row.ours:8.2f} {row.theirs:8.2f} {row.unit} {row.ratio:6.1f}x")
