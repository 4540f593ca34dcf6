"""One log takes another's place: what records do not tell goes over with them."""

from moldau.kernel.clock import Instant
from moldau.log.appender import Appender
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.producer_snapshots import encode_snapshot
from moldau.log.state import LogState


def succeed(state: LogState, before: LogState, appender: Appender, now: Instant) -> None:
    """Give a log with the same batches the end, the epochs and the producers of another.

    Producers are known for a while after retention took their records, and a leader's epoch may
    have begun without any. A snapshot keeps the producers over a crash.
    """
    if state.end_offset < before.end_offset:
        # Compaction or retention has left nothing there.
        appender.roll(now.wall_ms, before.end_offset)
    assert state.end_offset == before.end_offset, "records are missing at the end"
    state.epochs = LeaderEpochs(before.epochs.starts)
    appender.reload()
    appender.note_epochs()
    state.producers.adopt(before.producers)
    if state.active.has_files:
        snapshot = encode_snapshot(state.producers.states.values())
        appender.write_snapshot(state.end_offset, snapshot)
