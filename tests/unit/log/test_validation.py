"""What a leader refuses, and with which of Kafka's errors."""

import pytest

from moldau._native.records import Record, check_batches, read_batches
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError
from moldau.log.producers import Origin
from moldau.log.validation import find_ordinary, validate_append
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import CONTROL, LOG_APPEND_TIME, build_batch, read_records, validate
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.log.logs import START_MS, TestLog, batch_of

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))


def refused(data: bytearray, config: LogConfig | None = None, **options) -> AppendError:
    options.setdefault("origin", Origin.CLIENT)
    with pytest.raises(AppendError) as caught:
        validate_append(
            config or LogConfig(), data, check_batches(data), now_ms=START_MS, **options
        )
    return caught.value


def accepted(data: bytearray, config: LogConfig):
    return validate_append(config, data, validate(data), origin=Origin.CLIENT, now_ms=START_MS)


def test_too_large() -> None:
    size = len(batch_of())
    accepted(batch_of(), LogConfig(max_message_bytes=size))
    error = refused(batch_of(), LogConfig(max_message_bytes=size - 1))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    error = refused(batch_of(), LogConfig(segment_bytes=size - 1))
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_client_sends_one_batch_from_offset_0_without_control_records() -> None:
    two = batch_of() + batch_of()
    shifted = bytearray(build_batch([Record(5, START_MS, b"k", b"v")]))
    control = batch_of(attributes=CONTROL)
    nameless = batch_of(producer_id=1, producer_epoch=0)
    for data in (two, shifted, control, nameless):
        assert refused(data).code is ErrorCode.INVALID_RECORD
    for data in (two, shifted, control, nameless):
        validate_append(
            LogConfig(), data, check_batches(data), origin=Origin.COORDINATOR, now_ms=START_MS
        )


def test_keyless_records_on_a_compacted_topic_are_named() -> None:
    keys = [b"a", None, b"b", None]
    data = bytearray(build_batch([Record(n, START_MS, key, b"v") for n, key in enumerate(keys)]))
    error = refused(data, COMPACTED)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [number for number, _ in error.record_errors] == [1, 3]
    accepted(data, LogConfig())


@pytest.mark.parametrize("codec", range(5))
def test_timestamps_out_of_bounds_are_named(codec: int) -> None:
    config = LogConfig(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=200)
    times = [START_MS, START_MS - 100, START_MS - 101, START_MS + 200, START_MS + 201, -1]
    data = bytearray(
        build_batch([Record(n, t, b"k", b"v") for n, t in enumerate(times)], codec=codec)
    )
    checked = validate(data)
    with pytest.raises(AppendError) as caught:
        validate_append(config, data, checked, origin=Origin.CLIENT, now_ms=START_MS)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in caught.value.record_errors] == [2, 4]


def test_only_a_broker_sets_log_append_time() -> None:
    data = batch_of(attributes=LOG_APPEND_TIME)
    config = LogConfig(message_timestamp_type="LogAppendTime")
    assert refused(data, config).code is ErrorCode.INVALID_TIMESTAMP
    kept, (batch,) = accepted(data, LogConfig())
    assert not batch.is_log_append_time
    assert read_batches(kept)[0].max_timestamp == START_MS


def test_a_wrong_largest_timestamp_is_put_right() -> None:
    data = batch_of(2)
    data[35:43] = (START_MS + 99).to_bytes(8)
    data[17:21] = _crc(data)
    kept, (batch,) = accepted(data, LogConfig())
    assert batch.max_timestamp == START_MS
    assert read_batches(kept)[0].max_timestamp == START_MS


def _crc(data: bytearray) -> bytes:
    from moldau._native.records import crc32c

    return crc32c(data[21:]).to_bytes(4)


def test_log_append_time_is_the_leaders() -> None:
    log = TestLog(MemoryDisk(), LogConfig(message_timestamp_type="LogAppendTime"))
    log.tick(500)
    appended = log.add(2, timestamp=5)
    assert appended.append_time_ms == START_MS + 500
    data = log.read(0)
    (batch,) = read_batches(data)
    assert batch.is_log_append_time
    assert [record.timestamp for record in read_records(data, batch)] == [START_MS + 500] * 2


@pytest.mark.parametrize("kind", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", range(5))
def test_the_topics_compression_replaces_the_producers(kind: str, codec: int) -> None:
    data = batch_of(20, codec=codec, producer_id=3, producer_epoch=1, base_sequence=4)
    before = read_records(data, read_batches(data)[0])
    log = TestLog(MemoryDisk(), LogConfig(compression_type=kind))
    log.append(data)
    log.commit()
    stored = log.read(0)
    (batch,) = read_batches(stored)
    assert batch.codec == ["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(kind)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (3, 1, 4)
    assert read_records(stored, batch) == before


def test_what_is_ordinary_needs_no_validation() -> None:
    data = batch_of()
    checked = validate(data)
    ordinary = find_ordinary(LogConfig())
    assert ordinary is not None
    batches = ordinary.take(checked, True, START_MS)
    before = bytes(data)
    options = {"origin": Origin.CLIENT, "now_ms": START_MS}
    assert validate_append(LogConfig(), data, checked, **options) == (data, batches)
    assert data == before
    for config in (
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(compression_type="gzip"),
    ):
        assert find_ordinary(config) is None
