"""The laws that every log obeys at every moment between two wake-ups."""

from moldau._native.records import Batch, read_batches
from moldau.kernel.disk import Disk
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.partition import PartitionLog
from moldau.log.producer_state import ProducerState
from moldau.log.producers import Producers
from moldau.log.reading import Isolation
from moldau.log.segment import Segment


def stored_batches(log: PartitionLog, disk: Disk) -> list[tuple[Segment, Batch, bytes]]:
    """Read every batch without any index; the checksums are checked."""
    found = []
    for segment in log.segments:
        data = disk.read(segment.path, 0, segment.size) if segment.size else b""
        batches = read_batches(data)
        assert sum(batch.size for batch in batches) == segment.size, f"{segment.path} ends badly"
        found += [(segment, b, data[b.position : b.position + b.size]) for b in batches]
    return found


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


def _check_epochs(log: PartitionLog, stored: list[tuple[Segment, Batch, bytes]]) -> None:
    rebuilt = LeaderEpochs()
    for _, batch, _ in stored:
        rebuilt.assign(batch.leader_epoch, batch.base_offset)
    rebuilt.truncate_from_start(log.log_start)
    for epoch in {
        batch.leader_epoch for _, batch, _ in stored if batch.base_offset >= log.log_start
    }:
        expected = rebuilt.end_offset_for(epoch, log.written_offset)
        assert log.end_offset_for(epoch) == expected, f"epoch {epoch} differs from its rebuild"


def _check_reads(log: PartitionLog, stored: list[tuple[Segment, Batch, bytes]]) -> None:
    """Every read is what a search from the beginning finds, so no index can change it."""
    visible = [(s, b) for s, b, _ in stored if b.last_offset < log.high_watermark]
    offsets = {log.log_start, log.high_watermark}
    for _, batch in visible[:: max(1, len(visible) // 16)]:
        offsets |= {batch.base_offset, batch.last_offset, batch.last_offset + 1}
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


def check_producers(log: PartitionLog, disk: Disk, *, since: Producers | None = None) -> None:
    """Assert that what is known of the producers follows from the log, if nothing was forgotten."""
    rebuilt = since or Producers()
    for segment, batch, data in stored_batches(log, disk):
        rebuilt.replay(read_batches(data)[0], data, segment.base_offset, batch.position)
    assert _last(log.producers) == _last(rebuilt)


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
