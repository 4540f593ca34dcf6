"""A log on a disk with faults, against a list in memory: all log laws after every step."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Concatenate, ParamSpec

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from moldau._native.records import Batch, read_batches
from moldau.kernel.disk import DiskFailedError, DiskFullError, DiskMissingError
from moldau.log.config import LogConfig
from moldau.log.dirty import Dirty
from moldau.log.errors import StorageFullError
from moldau.records.batch import TRANSACTIONAL
from moldau.records.control import build_end_transaction
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from moldau.simulation.laws.log import (
    check_committed_reads,
    check_log,
    check_producers,
    stored_batches,
    stored_bytes,
)
from tests.unit.log.logs import DIRECTORY, TestLog, batch_of

CONFIG = LogConfig(
    segment_bytes=1500,
    segment_ms=3000,
    index_interval_bytes=200,
    segment_index_bytes=120,
    retention_ms=1000,
    file_delete_delay_ms=500,
)
CRC_COVERS_FROM = 21  # in a batch; before it, only the length and the magic are not left to chance
PLAIN, IDEMPOTENT, TRANSACTIONS = -1, (0, 1), 2
FALLIBLE = ("append", "sync", "truncate", "rename", "read", "sync_directory", None)

P = ParamSpec("P")


def header_of(data: bytes) -> Batch:
    """Read a single batch."""
    (batch,) = read_batches(data)
    return batch


def may_crash(
    step: Callable[Concatenate["LogMachine", P], None],
) -> Callable[Concatenate["LogMachine", P], None]:
    """Let the power go, or the disk fail, in the middle of a step."""

    def wrapped(self: "LogMachine", *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            step(self, *args, **kwargs)
        except PowerLostError:
            self.crash()
        except DiskFailedError:
            self.keeps_cache = False  # what it shows after a failed sync is not on the device
            self.crash()

    wrapped.__name__ = step.__name__
    return wrapped


class LogMachine(RuleBasedStateMachine):
    """Plays the owner of a log, and remembers what it may expect.

    A batch is the bytes that are stored. `history` has all that are in the log, and those before
    them that retention took out.
    """

    @initialize(seed=st.integers(0, 1 << 32), is_journaled=st.booleans())
    def begin(self, seed: int, is_journaled: bool) -> None:
        self.random = Random(seed)
        self.is_journaled = is_journaled
        self.disk = SimulatedDisk(seed, is_journaled=is_journaled)
        self.log = TestLog(self.disk, CONFIG)
        self.history: list[bytes] = []
        self.staged: list[bytes] = []
        self.cut: list[list[bytes]] = []  # histories that a crash may bring back
        self.gone: list[bytes] = []  # taken out by retention from the midst of what is left
        self.sure = 0  # everything below was acknowledged
        self.written = 0  # everything below was given to the disk
        self.first = 0  # below it retention took everything
        self.epoch = 0
        self.coordinator_epoch = 0
        self.syncing: tuple[Dirty, bool] | None = None
        self.keeps_cache = False
        self.has_all_snapshots = True

    # What the owner does.

    @rule(
        sizes=st.lists(st.integers(0, 300), min_size=1, max_size=6),
        count=st.integers(1, 4),
        producer=st.sampled_from((PLAIN, *IDEMPOTENT, TRANSACTIONS)),
        age=st.sampled_from((0, 0, 0, 300)),
    )
    def append(self, sizes: list[int], count: int, producer: int, age: int) -> None:
        for size in sizes:
            data = batch_of(
                count,
                timestamp=self.log.now.wall_ms - age,
                value=self.random.randbytes(size),
                producer_id=producer,
                producer_epoch=-1 if producer == PLAIN else 0,
                base_sequence=self._next_sequence(producer),
                attributes=TRANSACTIONAL if producer == TRANSACTIONS else 0,
            )
            self.log.append(data, leader_epoch=self.epoch)
            self.staged.append(bytes(data))

    @rule(commit=st.booleans())
    @may_crash
    def end_transaction(self, commit: bool) -> None:
        self.coordinator_epoch += 1
        data = bytearray(
            build_end_transaction(
                commit=commit,
                coordinator_epoch=self.coordinator_epoch,
                producer_id=TRANSACTIONS,
                producer_epoch=0,
                timestamp=self.log.now.wall_ms,
            )
        )
        self.log.append_marker(data, leader_epoch=self.epoch)
        self.staged.append(bytes(data))

    @rule(producer=st.sampled_from(IDEMPOTENT))
    def send_again(self, producer: int) -> None:
        """The last batch of a producer is not appended twice."""
        for data in reversed(self.history + self.staged):
            batch = header_of(data)
            if batch.producer_id == producer:
                if batch.base_offset >= self.log.log.segments[0].base_offset:
                    again = bytearray(bytes(8) + data[8:])
                    appended = self.log.append(again, leader_epoch=self.epoch)
                    assert appended.is_duplicate
                    assert appended[:2] == (batch.base_offset, batch.last_offset)
                return

    @rule()
    @may_crash
    def write(self) -> None:
        self._write()

    @rule(is_early=st.booleans())
    @may_crash
    def begin_sync(self, is_early: bool) -> None:
        """Syncs run beside the log: what they cover is on the device before the log hears of it."""
        self._write()
        if self.syncing is None:
            dirty = self.log.log.take_dirty(self.log.now)
            self.syncing = dirty, is_early
            if is_early:
                self._sync(dirty)

    @rule()
    @may_crash
    def end_sync(self) -> None:
        if self.syncing is not None:
            dirty, is_early = self.syncing
            if is_early or self._sync(dirty):
                self.log.log.synced(dirty)
                self.syncing = None
                self.sure = self.log.log.recovery_point

    @rule()
    @may_crash
    def commit(self) -> None:
        self.end_sync()
        self.begin_sync(is_early=False)
        self.end_sync()

    @rule()
    def checkpoint(self) -> None:
        self.log.checkpoint()

    @rule()
    @may_crash
    def lead_anew(self) -> None:
        self._write()
        self._lead_anew()

    @rule(ms=st.sampled_from((10, 600, 1500)))
    def wait(self, ms: int) -> None:
        self.log.tick(ms)

    @rule(share=st.floats(0, 1))
    def advance(self, share: float) -> None:
        """The other replicas catch up: consumers see more."""
        log = self.log.log
        log.advance_high_watermark(
            int(log.high_watermark + share * (log.durable_offset - log.high_watermark))
        )

    @rule(ms=st.sampled_from((10, 1500, 1500)), commits=st.booleans())
    @may_crash
    def retain(self, ms: int, commits: bool) -> None:
        if commits:
            self.commit()
            self.advance(1.0)
            self.checkpoint()
        self._write()
        self.log.tick(ms)
        log = self.log.log
        high = log.high_watermark
        self.first = high  # if this is cut short, what consumers saw may be gone
        log.apply_retention(self.log.now, up_to=self.log.recovery_point)
        self.first = log.segments[0].base_offset
        assert self.first <= high, "what other replicas do not have is deleted"
        for path in log.take_removable(self.log.now):
            with suppress(DiskMissingError):  # another of that name may have been removed
                self.disk.remove(path)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        log = self.log.log
        log.delete_records(int(log.log_start + share * (log.high_watermark - log.log_start)))

    @rule(share=st.floats(0, 1))
    @may_crash
    def truncate(self, share: float) -> None:
        """A follower cuts its log when another leader tells it to."""
        self._write()
        log = self.log.log
        to = log.find_cut(int(log.log_start + share * (log.log_end - log.log_start)))
        self.log.lower(to)
        self.sure = min(self.sure, to)
        self.written = to
        self.cut.append(list(self.history))
        log.truncate_to(to, self.log.now)
        assert log.log_end == to
        self.history = [data for data in self.history if header_of(data).last_offset < to]
        self._lead_anew()

    # What happens to it.

    @precondition(lambda self: self.disk.capacity_bytes is None)
    @rule(room=st.integers(0, 2000))
    def fill_disk(self, room: int) -> None:
        self.has_all_snapshots = False
        with self.disk.without_faults():
            used = sum(self.disk.size(f"{DIRECTORY}/{name}") for name in self.log.names())
        self.disk.capacity_bytes = used + room

    @rule()
    def free_disk(self) -> None:
        self.disk.capacity_bytes = None

    @rule()
    @may_crash
    def restart(self) -> None:
        self.disk.capacity_bytes = None
        self.end_sync()
        self._write()
        self.log.close()
        self.sure = self.log.log.log_end
        self._reopen(is_clean=True)

    @rule(after=st.integers(0, 30), keeps_cache=st.booleans())
    def let_power_go(self, after: int, keeps_cache: bool) -> None:
        """The power goes some operations from now, or else the process is killed."""
        self.keeps_cache = keeps_cache
        self.disk.lose_power(after=after)

    @rule(operation=st.sampled_from(FALLIBLE), after=st.integers(0, 5))
    def let_fail(self, operation: str | None, after: int) -> None:
        self.disk.fail(operation, after=after)

    @rule(again=st.lists(st.integers(0, 20), max_size=2))
    def crash(self, again: list[int] | None = None) -> None:
        """Start again from what a crash has left; the first attempts may crash, too."""
        self._fall()
        for after in again or ():
            self.disk.lose_power(after=after)
            with suppress(PowerLostError):
                self._reopen(is_clean=False)
            self._fall()
        self._reopen(is_clean=False)

    @rule(share=st.floats(0, 1, exclude_max=True))
    @may_crash
    def rot(self, share: float) -> None:
        """A bit flips in what is checked after a crash: the log ends there, and says so."""
        self._write()
        log = self.log.log
        synced = self.log.recovery_point
        with self.disk.without_faults():
            stored = stored_batches(log, self.disk)
        tail = [(s, b) for s, b, _ in stored if b.last_offset >= synced]
        if not tail:
            return
        number = int(share * len(tail))
        segment, batch = tail[number]
        position = self.random.randrange(
            batch.position + CRC_COVERS_FROM, batch.position + batch.size
        )
        self.disk.flip_bit(segment.path, position)
        self.history = [d for d in self.history if header_of(d).last_offset < batch.base_offset]
        self.sure = min(self.sure, batch.base_offset)
        self.cut.clear()
        self.keeps_cache = True
        self.disk.revive()
        self._reopen(is_clean=False)
        assert self.log.notices, "damage has to be told"
        is_rot = number < len(tail) - 1
        assert any(notice.is_alarming for notice in self.log.notices) == is_rot

    # How it works.

    def _write(self) -> None:
        try:
            self.log.log.write()
        except StorageFullError:
            # It was cut off, but a crash may bring it back.
            self.cut.append(self.history + self.staged)
            self.staged = []
        else:
            self.history += self.staged
            self.staged = []
            self.written = self.log.log.written_offset

    def _sync(self, dirty: Dirty) -> bool:
        try:
            self.log.store(dirty)
        except DiskFullError:
            self.log.log.put_back(dirty)
            self.syncing = None
            return False
        return True

    def _lead_anew(self) -> None:
        self.epoch += 1
        self.log.log.begin_epoch(self.epoch)

    def _next_sequence(self, producer: int) -> int:
        if producer == PLAIN:
            return -1
        state = self.log.log.producers.states.get(producer)
        return 0 if state is None else state.next_sequence

    def _fall(self) -> None:
        if self.keeps_cache:
            self.disk.revive()
            self.sure = self.written
        else:
            self.disk.crash()
        # What was staged may be there in part, and what was cut may be back.
        self.history += self.staged
        self.staged = []

    def _reopen(self, *, is_clean: bool) -> None:
        try:
            self.log.reopen(is_clean=is_clean)
        except DiskFullError:  # it stays closed until there is room
            self.disk.capacity_bytes = None
            self.log.reopen(is_clean=is_clean)
        log = self.log.log
        assert log.log_end >= self.sure, "what was acknowledged is lost"
        first = log.segments[0].base_offset
        if first > self.first:
            assert self.sure <= self.first, "what retention had left is lost"
            assert not self.is_journaled, "a later name survives only with the earlier ones"
            self.has_all_snapshots = False  # a snapshot may tell of what is lost
        stored = self._stored()
        self.history = self._find_history(first, stored)
        self.cut = []
        self.staged = []
        self.syncing = None
        self.keeps_cache = False
        self.sure = self.written = log.log_end
        self.first = first

    def _find_history(self, first: int, stored: list[bytes]) -> list[bytes]:
        """Return what must have happened for this to be stored."""
        for history in [self.history, *self.cut]:
            before = [data for data in history if header_of(data).base_offset < first]
            rest = history[len(before) :]
            if rest[: len(stored)] == stored:
                return before + stored
            back = [d for d in rest if d in stored or header_of(d).base_offset >= self.first]
            if not self.is_journaled and back[: len(stored)] == stored:
                # Retention took out what lacks; some of the names that it had changed are back.
                self.has_all_snapshots = False
                self.gone += [data for data in rest if data not in back]
                return before + stored
        raise AssertionError("the log is none that it ever was")

    def _stored(self) -> list[bytes]:
        with self.disk.without_faults():
            return stored_bytes(self.log.log, self.disk)

    @invariant()
    def laws_hold(self) -> None:
        if not hasattr(self, "log") or self.staged:
            return
        log = self.log.log
        with self.disk.without_faults():
            check_log(log, self.disk)
            assert log.high_watermark <= log.recovery_point, "consumers see what may get lost"
            first = log.segments[0].base_offset
            assert self._stored() == [d for d in self.history if header_of(d).base_offset >= first]
            ever = sorted(self.gone + self.history, key=lambda data: header_of(data).base_offset)
            check_producers(log, self.disk, ever, is_complete=self.has_all_snapshots)
            if self.has_all_snapshots:
                check_committed_reads(log, self.disk, self.history)
