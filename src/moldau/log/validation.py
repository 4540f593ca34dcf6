"""What a leader demands of the batches that it appends, beyond their being whole.

A client's batch has passed `records.validate`: checksum, framing and every record. Here the topic's
settings have their say. Older formats were turned into format 2 before.
"""

from collections.abc import Sequence
from typing import Final, NoReturn, TypeAlias

from moldau._native.log import Ordinary
from moldau._native.records import (
    NO_TIMESTAMP,
    Batch,
    RecordStats,
    patch_timestamps,
    read_batches,
)
from moldau.log.config import LogConfig
from moldau.log.errors import AppendError
from moldau.log.producers import Origin
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import TRANSACTIONAL, build_batch, read_records
from moldau.records.compression import Codec

Checked: TypeAlias = Sequence[tuple[Batch, RecordStats | None]]
"""Batches with what a walk over their records found; None for those of the broker's own making."""
Writable: TypeAlias = bytearray | memoryview

_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def find_ordinary(config: LogConfig) -> Ordinary | None:
    """Return what needs not be validated; None if the topic wants something of every batch."""
    if config.message_timestamp_type != "CreateTime" or config.compression_type != "producer":
        return None
    return Ordinary(
        batch_bytes_max=config.max_message_bytes,
        total_bytes_max=config.segment_bytes,
        before_ms_max=config.message_timestamp_before_max_ms,
        after_ms_max=config.message_timestamp_after_max_ms,
        is_keyed=config.is_compacted,
    )


def validate_append(
    config: LogConfig, data: Writable, checked: Checked, *, origin: Origin, now_ms: int
) -> tuple[Writable, list[Batch]]:
    """Return what is to be appended: the same buffer, or a new one with another compression.

    `AppendError` says what the client is told. A wrong largest timestamp is put right in place.
    """
    if origin is Origin.CLIENT:
        _check_client(checked)
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    batches = []
    for batch, stats in checked:
        _check_batch(config, data, batch, stats, earliest, latest)
        batches.append(batch)
    if config.compression_type != "producer":
        data, batches = _recompress(config, data, batches)
    size = 0
    for batch in batches:
        size += batch.size
    if size > config.segment_bytes:
        raise AppendError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes do not fit into a segment of {config.segment_bytes}",
        )
    return data, batches


def _check_batch(
    config: LogConfig,
    data: Writable,
    batch: Batch,
    stats: RecordStats | None,
    earliest: int,
    latest: int,
) -> None:
    is_append_time = config.message_timestamp_type == "LogAppendTime"
    if batch.size > config.max_message_bytes:
        raise _too_large(batch.size, config)
    if batch.is_control or stats is None:
        return
    if stats.keyless_count and config.is_compacted:
        _refuse_keyless(data, batch)
    if batch.is_log_append_time or (
        not is_append_time
        and stats.max_timestamp != NO_TIMESTAMP
        and not earliest <= stats.min_timestamp <= stats.max_timestamp <= latest
    ):
        _check_timestamps(config, data, batch, earliest, latest)
    if batch.is_log_append_time:
        patch_timestamps(data, batch, max_timestamp=batch.max_timestamp, log_append_time=False)
    elif not is_append_time and batch.max_timestamp != stats.max_timestamp:
        # Retention and lookups by time rely on it, and a client may say anything.
        patch_timestamps(data, batch, max_timestamp=stats.max_timestamp, log_append_time=False)


def _check_client(checked: Checked) -> None:
    batch = checked[0][0]
    if len(checked) > 1:
        raise _invalid(f"{len(checked)} batches for one partition; a client sends one")
    if batch.base_offset != 0:
        raise _invalid(f"the base offset of a produced batch is {batch.base_offset}, not 0")
    if batch.is_control:
        raise _invalid("a client may not write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(
            f"producer {batch.producer_id} sent the sequence number {batch.base_sequence}"
        )


def _refuse_keyless(data: Writable, batch: Batch) -> NoReturn:
    errors = [
        (number, "a compacted topic takes no record without a key")
        for number, record in enumerate(read_records(data, batch))
        if record.key is None
    ]
    raise AppendError(
        ErrorCode.INVALID_RECORD,
        f"{len(errors)} records have no key, and the topic is compacted",
        tuple(errors),
    )


def _check_timestamps(
    config: LogConfig, data: Writable, batch: Batch, earliest: int, latest: int
) -> None:
    errors = []
    is_append_time = config.message_timestamp_type == "LogAppendTime"
    for number, record in enumerate(read_records(data, batch)):
        reason = None
        if not is_append_time and record.timestamp != NO_TIMESTAMP:
            if not earliest <= record.timestamp <= latest:
                reason = f"timestamp {record.timestamp} is not in {earliest} to {latest}"
        elif batch.is_log_append_time:
            reason = "only a broker sets log append time"
        if reason is not None:
            errors.append((number, reason))
    if errors:
        raise AppendError(
            ErrorCode.INVALID_TIMESTAMP,
            f"{len(errors)} records have an invalid timestamp; {errors[0][1]}",
            tuple(errors),
        )


def _recompress(
    config: LogConfig, data: Writable, batches: list[Batch]
) -> tuple[Writable, list[Batch]]:
    """Give the batches the topic's own compression; control batches have none."""
    codec = _CODECS[config.compression_type]
    if all(batch.codec == codec or batch.is_control for batch in batches):
        return data, batches
    rebuilt = bytearray()
    for batch in batches:
        if batch.codec == codec or batch.is_control:
            rebuilt += data[batch.position : batch.position + batch.size]
            continue
        changed = build_batch(
            read_records(data, batch),
            codec=codec,
            level=_level(config),
            attributes=TRANSACTIONAL if batch.is_transactional else 0,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
        if len(changed) > config.max_message_bytes:
            raise _too_large(len(changed), config)
        rebuilt += changed
    return rebuilt, read_batches(rebuilt, check_crc=False)


def _level(config: LogConfig) -> int | None:
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return levels.get(config.compression_type)


def _too_large(size: int, config: LogConfig) -> AppendError:
    return AppendError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size} bytes is over max.message.bytes, {config.max_message_bytes}",
    )


def _invalid(reason: str) -> AppendError:
    return AppendError(ErrorCode.INVALID_RECORD, reason)
