"""A log on a disk with faults, against a list in memory: all log laws after every step."""

import os
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moldau.kernel.disk import DiskFailedError, DiskFullError
from moldau.log.config import LogConfig
from moldau.log.errors import StorageFullError
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from tests.laws.log import check_log, check_producers, stored_batches
from tests.unit.log.logs import TestLog, batch_of

EXAMPLES = int(os.environ.get("MOLDAU_LOG_EXAMPLES", "40"))
CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=200,
    segment_index_bytes=120,
    retention_ms=1000,
    file_delete_delay_ms=500,
)


@dataclass
class Written:
    """A batch that the log took."""

    base_offset: int
    last_offset: int
    body: bytes  # what the checksum covers


class LogMachine(RuleBasedStateMachine):
    """Plays the owner of a log, and remembers what it may expect."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.log = TestLog(SimulatedDisk(seed), CONFIG)
        self.batches: list[Written] = []
        self.staged: list[Written] = []
        self.ever: list[Written] = []
        self.epoch = 0
        self.sequences = dict.fromkeys(range(3), 0)
        self.acknowledged = 0
        self.has_all_producers = True

    # What the owner does.

    @rule(count=st.integers(1, 4), size=st.integers(0, 300), producer=st.integers(-1, 2))
    def append(self, count: int, size: int, producer: int) -> None:
        sequence = self.sequences.get(producer, -1)
        data = batch_of(
            count,
            timestamp=self.log.now.wall_ms,
            value=bytes(size),
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
        )
        appended = self.log.append(data, leader_epoch=self.epoch)
        written = Written(appended.base_offset, appended.last_offset, bytes(data[21:]))
        self.staged.append(written)
        self.ever.append(written)
        if producer >= 0:
            self.sequences[producer] += count

    @rule()
    def write(self) -> None:
        try:
            self.log.log.write()
        except StorageFullError:
            self._forget_staged()
        else:
            self.batches += self.staged
            self.staged = []

    @rule()
    def commit(self) -> None:
        self.write()
        try:
            self.log.commit()
        except DiskFullError:
            return  # no room for a checkpoint, so nothing counts as synced
        self.acknowledged = self.log.log.recovery_point

    @rule()
    def checkpoint(self) -> None:
        self.log.checkpoint()

    @rule()
    def lead_anew(self) -> None:
        self.write()
        self.epoch += 1
        self.log.log.begin_epoch(self.epoch)

    @rule(ms=st.integers(0, 700))
    def wait(self, ms: int) -> None:
        self.log.tick(ms)

    @rule()
    def retain(self) -> None:
        self.write()
        log = self.log.log
        log.apply_retention(self.log.now)
        for path in log.take_removable(self.log.now):
            self.log.disk.remove(path)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        log = self.log.log
        log.delete_records(int(log.log_start + share * (log.high_watermark - log.log_start)))

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.write()
        log = self.log.log
        to = int(log.log_start + share * (log.log_end - log.log_start))
        # As the owner must: a lower recovery point is on the device before the log is cut.
        self.log.recovery_point = min(self.log.recovery_point, log.segments[0].base_offset)
        log.truncate_to(to, self.log.now)
        self.batches = [b for b in self.batches if b.last_offset < log.log_end]
        self.acknowledged = min(self.acknowledged, log.log_end)
        self._reload_sequences()

    # What happens to it.

    @precondition(lambda self: self.log.disk.capacity_bytes is None)
    @rule(room=st.integers(0, 2000))
    def fill_disk(self, room: int) -> None:
        used = (1 << 40) - self._free()
        self.log.disk.capacity_bytes = used + room

    @rule()
    def free_disk(self) -> None:
        self.log.disk.capacity_bytes = None

    @rule()
    def restart(self) -> None:
        self.write()
        if self.log.disk.capacity_bytes is None:
            self.log.close()
            self.acknowledged = self.log.log.recovery_point
            self.log.reopen(is_clean=True)
            self._reopened()

    @rule(after=st.integers(0, 12), share=st.booleans())
    def lose_power(self, after: int, share: bool) -> None:
        self.log.disk.capacity_bytes = None
        self.log.disk.lose_power(after=after)
        try:
            self.commit()
            if share:
                self.retain()
        except PowerLostError:
            self.batches += self.staged
        self.log.disk.crash()
        self.log.disk.make_directory("orders-0")
        self.log.reopen()
        self._reopened()

    def _reopened(self) -> None:
        log = self.log.log
        sure_below = self.acknowledged
        assert log.log_end >= sure_below, "an acknowledged batch is lost"
        stored = self._stored()
        first = log.segments[0].base_offset
        sure = [b for b in self.batches if first <= b.base_offset and b.last_offset < sure_below]
        assert stored[: len(sure)] == sure, "an acknowledged batch has changed"
        # Behind it there may be what was not synced, even what was cut off and not synced.
        assert all(batch in self.ever for batch in stored)
        self.batches = [b for b in self.batches if b.base_offset < first] + stored
        self.staged = []
        self._reload_sequences()
        self.acknowledged = log.log_end
        self.log.checkpoint()

    def _forget_staged(self) -> None:
        self.staged = []
        self._reload_sequences()

    def _reload_sequences(self) -> None:
        states = self.log.log.producers.states
        for producer in self.sequences:
            state = states.get(producer)
            self.sequences[producer] = state.next_sequence if state is not None else 0

    def _stored(self) -> list[Written]:
        return [
            Written(b.base_offset, b.last_offset, data[21:])
            for _, b, data in stored_batches(self.log.log, self.log.disk)
        ]

    def _free(self) -> int:
        disk = self.log.disk
        names = disk.list("orders-0")
        return (1 << 40) - sum(disk.size(f"orders-0/{name}") for name in names)

    @invariant()
    def laws_hold(self) -> None:
        if not hasattr(self, "log") or self.staged:
            return
        check_log(self.log.log, self.log.disk)
        first = self.log.log.segments[0].base_offset
        # What retention has taken out may be back after a crash.
        assert self._stored() == [b for b in self.batches if b.base_offset >= first]
        if first == 0 and self.has_all_producers:
            check_producers(self.log.log, self.log.disk)
        self.has_all_producers = self.has_all_producers and first == 0


@pytest.mark.long
def test_the_log_is_the_list() -> None:
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_failed_write_is_not_swallowed() -> None:
    log = TestLog(SimulatedDisk(1), CONFIG)
    log.add()
    log.append(batch_of())
    log.disk.fail("append")
    with pytest.raises(DiskFailedError):
        log.log.write()
