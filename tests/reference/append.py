"""Appends of clients, slow and readable: which the kernel takes, and what becomes of the others."""

from moldau._native.records import Batch, check_batches
from moldau.broker.append_request import ACKS_ALL
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.log.appender import Appended
from moldau.log.errors import AppendError
from moldau.log.producers import Origin, Producers
from moldau.log.validation import validate_append
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import validate
from moldau.replication.replica import AppendCallback, Replica


def is_ordinary(replica: Replica, data: bytearray, now: Instant, acks: int) -> bool:
    """Say whether a batch needs nothing but an offset, as the rules of the long way have it."""
    log = replica.log
    if log is None or (acks == ACKS_ALL and replica.is_under_min_in_sync):
        return False
    config = log.config
    copy = bytearray(data)
    try:
        checked = check_batches(data)
        ((batch, _),) = checked
        validate_append(config, copy, checked, origin=Origin.CLIENT, now_ms=now.wall_ms)
    except (ProtocolError, AppendError, ValueError):
        return False
    tail = log.end.tail
    return (
        config.message_timestamp_type == "CreateTime"
        and config.compression_type == "producer"
        and not (batch.codec or batch.is_transactional or batch.is_log_append_time)
        and copy == data  # its largest timestamp is right
        and _follows(log.producers, batch)
        and log.latest_epoch == replica.leader_epoch
        and not (tail.position and tail.position + batch.size > config.segment_bytes)
    )


def _follows(producers: Producers, batch: Batch) -> bool:
    state = producers.states.get(batch.producer_id)
    return state is None or (
        state.producer_epoch == batch.producer_epoch
        and state.next_sequence == batch.base_sequence
        and state.transaction_first_offset < 0
    )


def append_long(
    replica: Replica, data: bytearray, now: Instant, acks: int, callback: AppendCallback
) -> Appended:
    """Append as Produce does when the kernel declines."""
    replica.traffic.produce_requests += 1
    if acks == ACKS_ALL:
        replica.check_in_sync()
    try:
        checked = validate(data)
    except ProtocolError as error:
        raise AppendError(ErrorCode.INVALID_RECORD, str(error)) from error
    appended = replica.append(data, checked, now, callback)
    replica.traffic.bytes_in += len(data)
    replica.traffic.messages_in += appended.last_offset - appended.base_offset + 1
    return appended
