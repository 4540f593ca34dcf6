"""What coordinators know is what the records of their partitions say."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from moldau._native.records import Batch, Record
from moldau.coordination.machine import Machine
from moldau.coordination.stored_record import decode_record, record_types
from moldau.groups.machine import GroupMachine
from moldau.kernel.disk import Buffer
from moldau.log.markers import find_marker
from moldau.protocol.stored import offsets
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.records.batch import read_records
from moldau.simulation.laws.coordinated import TRANSACTION_TYPES
from moldau.simulation.laws.violation import LawViolation
from moldau.transactions.machine import TransactionMachine

OFFSET_TYPES: Final = record_types(offsets)

StoredBatches = Iterable[tuple[Buffer, Batch]]
OffsetKey = tuple[str, str, int]
"""A group, a topic and a partition."""


class _CommittedOffset(NamedTuple):
    record_offset: int
    offset: int


def check_rebuilt(machine: Machine, batches: StoredBatches) -> None:
    """Assert that a coordinator, of which nothing is staged, knows what its records say."""
    match machine:
        case GroupMachine() as groups:
            known = groups.shelf.offsets
            for key, expected in _offsets_of(batches).items():
                found = known.find(*key)
                if found is None or found.offset != expected:
                    told = None if found is None else found.offset
                    raise LawViolation(
                        "coordinator's memory",
                        f"it takes {told} for the offset of {key}, and its records say {expected}",
                    )
        case TransactionMachine() as transactions:
            _check_transactions(transactions, batches)
        case _:
            pass


def _check_transactions(machine: TransactionMachine, batches: StoredBatches) -> None:
    for transactional_id, expected in _transactions_of(batches).items():
        known = machine.shelf.transactions.get(transactional_id)
        found = None if known is None else (known.state.value, known.producer_id)
        if found != expected:
            raise LawViolation(
                "coordinator's memory",
                f"it has {transactional_id} in {found}, and its records say {expected}",
            )


def _offsets_of(batches: StoredBatches) -> Mapping[OffsetKey, int]:
    """Return the offsets that count after all batches."""
    counting: dict[OffsetKey, _CommittedOffset] = {}
    pending: dict[int, dict[OffsetKey, _CommittedOffset]] = {}
    for data, batch in batches:
        if batch.is_control:
            marker = find_marker(batch, data)
            ended = pending.pop(batch.producer_id, {}) if marker is not None else {}
            for key, committed in ended.items():
                known = counting.get(key)
                is_newer = known is None or committed.record_offset > known.record_offset
                if marker is not None and not marker.is_abort and is_newer:
                    counting[key] = committed
            continue
        for key, record, value in _commits(data, batch):
            if value is None:
                for known_offsets in (counting, *pending.values()):
                    known_offsets.pop(key, None)
                continue
            is_open = batch.is_transactional
            target = pending.setdefault(batch.producer_id, {}) if is_open else counting
            target[key] = _CommittedOffset(record.offset, value.offset)
    return {key: committed.offset for key, committed in counting.items()}


def _commits(
    data: Buffer, batch: Batch
) -> Iterator[tuple[OffsetKey, Record, OffsetCommitValue | None]]:
    for record in read_records(data, batch):
        decoded = decode_record(OFFSET_TYPES, record.key, record.value)
        if decoded is not None and isinstance(key := decoded[0], OffsetCommitKey):
            value = decoded[1]
            assert value is None or isinstance(value, OffsetCommitValue)
            yield (key.group, key.topic, key.partition), record, value


def _transactions_of(batches: StoredBatches) -> Mapping[str, tuple[int, int]]:
    """Return the state and producer id of each transactional id."""
    found: dict[str, tuple[int, int]] = {}
    for data, batch in batches:
        for record in () if batch.is_control else read_records(data, batch):
            decoded = decode_record(TRANSACTION_TYPES, record.key, record.value)
            if decoded is None or not isinstance(key := decoded[0], TransactionLogKey):
                continue
            found.pop(key.transactional_id, None)
            if isinstance(value := decoded[1], TransactionLogValue):
                found[key.transactional_id] = value.transaction_status, value.producer_id
    return found
