"""The laws that every log obeys at every moment between two wake-ups."""

from collections.abc import Iterable

from moldau._native.producers import ProducerState
from moldau._native.records import Batch, read_batches
from moldau.kernel.disk import Disk
from moldau.kernel.ids import LeaderEpoch, Offset, Position
from moldau.log.extents import Isolation
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.partition import PartitionLog
from moldau.log.producers import Producers
from moldau.log.segment import Segment
from moldau.records.batch import read_records


def stored_batches(log: PartitionLog, disk: Disk) -> list[tuple[Segment, Batch, bytes]]:
    """Read every batch without any index; the checksums are checked."""
    found = []
    for segment in log.segments:
        data = disk.read(segment.path, 0, segment.size) if segment.size else b""
        batches = read_batches(data)
        assert sum(batch.size for batch in batches) == segment.size, f"{segment.path} ends badly"
        found += [(segment, b, data[b.position : b.position + b.size]) for b in batches]
    return found


def stored_bytes(log: PartitionLog, disk: Disk) -> list[bytes]:
    """Read every batch without any index."""
    return [data for _, _, data in stored_batches(log, disk)]


def check_log(log: PartitionLog, disk: Disk) -> None:
    """Assert all log laws."""
    stored = stored_batches(log, disk)
    assert log.log_start <= log.stable_offset <= log.high_watermark <= log.written_offset
    assert log.written_offset <= log.log_end
    assert log.recovery_point <= log.written_offset
    end = -1
    epoch = -1
    for segment, batch, _ in stored:
        assert segment.base_offset <= batch.base_offset, "a batch below its segment"
        assert end < batch.base_offset <= batch.last_offset, "offsets must increase"
        assert epoch <= batch.leader_epoch, "leader epochs must not decrease"
        end, epoch = batch.last_offset, batch.leader_epoch
    assert end < log.written_offset
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    _check_epochs(log, stored)
    _check_reads(log, stored)
    _check_times(log, stored)


def _check_epochs(log: PartitionLog, stored: list[tuple[Segment, Batch, bytes]]) -> None:
    rebuilt = LeaderEpochs()
    for _, batch, _ in stored:
        rebuilt.assign(LeaderEpoch(batch.leader_epoch), Offset(batch.base_offset))
    rebuilt.truncate_from_start(log.log_start)
    kept = (batch for _, batch, _ in stored if batch.base_offset >= log.log_start)
    for epoch in dict.fromkeys(LeaderEpoch(batch.leader_epoch) for batch in kept):
        expected = rebuilt.end_offset_for(epoch, log.written_offset)
        found = log.end_offset_for(epoch)
        # Compaction may have removed the first batches of the next epoch.
        is_right = found == expected or (log.config.is_compacted and found[1] <= expected[1])
        assert is_right, f"epoch {epoch} differs from its rebuild: {found}, not {expected}"


def _check_reads(log: PartitionLog, stored: list[tuple[Segment, Batch, bytes]]) -> None:
    """Every read is what a search from the beginning finds, so no index can change it."""
    visible = [(s, b) for s, b, _ in stored if b.last_offset < log.high_watermark]
    offsets = {log.log_start, log.high_watermark}
    for _, batch in visible[:: max(1, len(visible) // 16)]:
        offsets |= set(map(Offset, (batch.base_offset, batch.last_offset, batch.last_offset + 1)))
    for offset in sorted(offsets):
        if not log.log_start <= offset <= log.high_watermark:
            continue
        extent = log.read(offset, bytes_max=1, isolation=Isolation.HIGH_WATERMARK).extent
        expected = next(((s, b) for s, b in visible if b.last_offset >= offset), None)
        if expected is None:
            assert extent is None, f"offset {offset}: nothing is there, but {extent} was returned"
        else:
            segment, batch = expected
            assert extent == (segment.path, batch.position, batch.size), f"offset {offset}"


def _check_times(log: PartitionLog, stored: list[tuple[Segment, Batch, bytes]]) -> None:
    """Every lookup by time is what a search from the beginning finds."""
    records = [
        (record.timestamp, record.offset, batch.leader_epoch)
        for _, batch, data in stored
        if batch.last_offset >= log.log_start
        for record in read_records(data, read_batches(data)[0])
        if record.offset >= log.log_start
    ]
    times = sorted({timestamp for timestamp, _, _ in records})
    for timestamp in {*times[:: max(1, len(times) // 4)], *times[-1:]}:
        found = next(record for record in records if record[0] >= timestamp)
        expected = found if found[1] < log.high_watermark else None
        assert log.find_by_timestamp(timestamp) == expected, f"timestamp {timestamp}"


def check_producers(
    log: PartitionLog,
    disk: Disk,
    history: Iterable[bytes] | None = None,
    *,
    is_complete: bool = True,
) -> None:
    """Assert that what is known of the producers follows from all batches that ever were.

    `history` has those that retention took out as well; None: there are none. If there was no room
    for snapshots it `is_complete` no longer: all that counts is what the stored batches tell.
    """
    stored = stored_bytes(log, disk)
    rebuilt = Producers()
    for data in stored if history is None else history:
        rebuilt.replay(read_batches(data)[0], data, Offset(0), Position(0))
    if is_complete:
        known, records = _last(log.producers), _last(rebuilt)
        assert known == records, f"producers differ from their rebuild: {known}, not {records}"
        return
    batches = [read_batches(data)[0] for data in stored]
    there = {b.producer_id for b in batches if b.producer_id >= 0 and not b.is_control}
    assert there <= set(log.producers.states) <= set(rebuilt.states)
    for producer_id in there:
        state, expected = log.producers.states[producer_id], rebuilt.states[producer_id]
        assert state.next_sequence == expected.next_sequence, f"producer {producer_id}"


def check_committed_reads(log: PartitionLog, disk: Disk, history: Iterable[bytes]) -> None:
    """Assert that readers of committed records hear of all aborted transactions, and of no other.

    `history` is all batches that ever were: a transaction may have begun before the log start.
    """
    replayed = Producers()
    aborted = []
    for data in history:
        completed = replayed.replay(read_batches(data)[0], data, Offset(0), Position(0))
        if completed is not None and completed.is_abort:
            aborted.append(completed[:3])
    offset = log.log_start
    while True:
        read = log.read(offset, bytes_max=700, isolation=Isolation.STABLE)
        if read.extent is None:
            break
        end = read_batches(disk.read(*read.extent))[-1].last_offset + 1
        assert end <= log.stable_offset, "what is not decided was read"
        told = [transaction[:3] for transaction in read.aborted]
        assert set(told) <= set(aborted), "a transaction that was not aborted"
        touched = [found for found in aborted if found[1] < end and found[2] >= offset]
        assert set(touched) <= set(told), "an aborted transaction is not told"
        offset = Offset(end)
    undecided = replayed.first_open
    if undecided is not None and log.log_start <= undecided.first_offset < log.high_watermark:
        assert log.stable_offset <= undecided.first_offset


def _last(producers: Producers) -> dict[int, tuple[object, ...]]:
    """What survives a restart: of each producer's batches the last.

    Not when that was written: a snapshot has one time for it and for a marker that came later.
    """

    def of(state: ProducerState) -> tuple[object, ...]:
        return (
            state.producer_epoch,
            state.coordinator_epoch,
            state.transaction_first_offset,
            state.next_sequence,
            [batch[:3] for batch in state.batches[-1:]],
        )

    return {producer_id: of(state) for producer_id, state in producers.states.items()}
