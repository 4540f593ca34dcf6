"""Segments of ours under a topic of Apache Kafka 4.3.1: it serves them, and goes on from there."""

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from moldau.kernel.ids import TopicId
from moldau.log.checkpoints import CLEAN_SHUTDOWN
from moldau.log.identity import PARTITION_METADATA, parse_partition_metadata
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.records.compression import Codec
from moldau.simulation.laws.log import check_log, check_producers
from tests.conformance.apache_kafka import ApacheKafka, apache_kafka
from tests.conformance.log_reading import consume, open_log, produce
from tests.conformance.sample_log import IDEMPOTENT, SampleBatch, SampleLog

TOPIC = "orders"
CONFIGS = {
    "internal.segment.bytes": "16000",
    "index.interval.bytes": "500",
    "retention.ms": "-1",
}
COMPLAINT = re.compile(r"corrupt| WARN | ERROR ", re.IGNORECASE)
PROVOKED = re.compile(r"Error processing append|OutOfOrderSequence")


def put_under(kafka: ApacheKafka, sample: SampleLog, topic_id: TopicId) -> None:
    """Put the segments of `sample` in the place of Kafka's, which is stopped."""
    place = kafka.data_directory / sample.path.name
    metadata = place / PARTITION_METADATA
    assert parse_partition_metadata(str(metadata), metadata.read_bytes()) == topic_id
    for path in place.iterdir():
        if path != metadata:
            path.unlink()
    shutil.copytree(sample.path, place, dirs_exist_ok=True)


def complaints(kafka: ApacheKafka) -> list[str]:
    """Return the lines of Kafka's log that say something bad about the partition."""
    lines = [line for line in kafka.output().splitlines() if f"{TOPIC}-0" in line]
    assert any("Log loaded for partition" in line for line in lines), "its log is empty"
    return [line for line in lines if COMPLAINT.search(line) and not PROVOKED.search(line)]


def send(kafka: ApacheKafka, data: bytes) -> PartitionProduceResponse:
    topic = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=data)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    answer = kafka.ask(request, ProduceResponse, 11)
    return answer.responses[0].partition_responses[0]


def last_idempotent(batches: Sequence[SampleBatch]) -> SampleBatch:
    return [batch for batch in batches if batch.producer_id == IDEMPOTENT][-1]


def test_kafka_serves_our_segments_and_we_take_them_back(tmp_path: Path) -> None:
    # Of now, because Kafka forgets producers that it has not heard of for a day.
    start_ms = time.time_ns() // 1_000_000 - 100_000
    targets = [0, *range(start_ms, start_ms + 50_000, 1000), start_ms * 2]
    sample = SampleLog(tmp_path / "ours", start_ms=start_ms)
    sample.fill(400)
    sample.owner.close()
    assert sample.stable_offset < sample.owner.log.log_end, "a transaction is open"
    # How long a node that was killed stays registered.
    session = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with apache_kafka(tmp_path / "node", session) as kafka:
        topic_id = kafka.create_topic(TOPIC, CONFIGS)
        kafka.stop()
        put_under(kafka, sample, topic_id)

        # After a clean shutdown it takes our indexes and our snapshot as they are.
        assert (kafka.data_directory / CLEAN_SHUTDOWN).exists()
        kafka.start()
        view = consume(kafka, [TOPIC], targets)[TOPIC]
        view.check(sample.owner)
        assert len(view.everything) == sum(
            len(batch.records) for batch in sample.batches if batch.marker is None
        )
        check_idempotence(kafka, sample)
        kafka.kill()

        # Now it checks the records, and makes everything else anew.
        kafka.start()
        after = consume(kafka, [TOPIC], targets)[TOPIC]
        assert after.everything[: len(view.everything)] == view.everything
        assert after.committed == view.committed
        assert after.by_time == view.by_time
        produce(kafka, [TOPIC], seed=3, timestamp=start_ms + 20_000)
        last = consume(kafka, [TOPIC], targets)[TOPIC]
        assert complaints(kafka) == []
    log = open_log(kafka.data_directory, TOPIC)
    assert log.notices == []
    assert log.log.log_end > sample.owner.log.log_end + 1000
    last.check(log)
    check_log(log.log, log.disk)
    check_producers(log.log, log.disk)


def check_idempotence(kafka: ApacheKafka, sample: SampleLog) -> None:
    """What our snapshot says of a producer, Kafka knows: its last batch, and what is next."""
    last = last_idempotent(sample.batches)
    again = send(kafka, sample.encode(last))
    assert (again.error_code, again.base_offset) == (0, last.records[0].offset)
    following = SampleBatch(last.records[:1], Codec.NONE, IDEMPOTENT)
    following.base_sequence = last.base_sequence + len(last.records) + 1
    assert send(kafka, sample.encode(following)).error_code == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    following.base_sequence -= 1
    taken = send(kafka, sample.encode(following))
    assert (taken.error_code, taken.base_offset) == (0, sample.owner.log.log_end)
