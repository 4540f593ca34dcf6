"""A log for tests, with the owner's part played."""

from contextlib import suppress

from moldau._native.records import Record, check_batches
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskFullError, DiskMissingError
from moldau.log.appender import Appended
from moldau.log.config import Durability, LogConfig
from moldau.log.dirty import Dirty
from moldau.log.extents import Isolation
from moldau.log.index_pages import PageCache
from moldau.log.partition import PartitionLog
from moldau.log.producers import Origin
from moldau.log.recovery import recover_log
from moldau.log.state import Notice, SegmentMaker, empty_log
from moldau.records.batch import build_batch, validate
from moldau.records.control import build_end_transaction

DIRECTORY = "orders-0"
START_MS = 1_700_000_000_000


def run(steps):
    """Run a generator to its end; return what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def batch_of(count: int = 1, *, timestamp: int = START_MS, value: bytes = b"v" * 50, **fields):
    """Build a client's batch."""
    key = fields.pop("key", b"k")
    records = [Record(n, timestamp, key, value) for n in range(count)]
    return bytearray(build_batch(records, **fields))


class TestLog:
    """A partition's log and its owner."""

    __test__ = False

    def __init__(self, disk: Disk, config: LogConfig | None = None, **options) -> None:
        self.disk = disk
        self.config = config or LogConfig()
        self.durability = options.get("durability", Durability.FSYNC)
        self.now = Instant(0.0, START_MS)
        self.recovery_point = 0
        self.log_start = 0
        self.compacted_to = 0
        self.notices: list[Notice] = []
        self.directory = options.get("directory", DIRECTORY)
        disk.make_directory(self.directory)
        if hasattr(disk, "sync_directory"):
            disk.sync_directory("")
        maker = self.maker()
        self.log = PartitionLog(empty_log(maker, 0, self.now.wall_ms), maker, self.durability)

    def maker(self) -> SegmentMaker:
        return SegmentMaker(self.disk, self.directory, PageCache(1 << 20), self.config)

    def tick(self, ms: int) -> None:
        self.now = Instant(self.now.monotonic + ms / 1000, self.now.wall_ms + ms)

    def append(self, data: bytearray, *, leader_epoch: int = 0, **options) -> Appended:
        return self.log.append(
            data, validate(data), leader_epoch=leader_epoch, now=self.now, **options
        )

    def append_marker(self, data: bytearray, *, leader_epoch: int = 0) -> Appended:
        (checked,) = check_batches(data)
        return self.log.append(
            data, [checked], leader_epoch=leader_epoch, now=self.now, origin=Origin.COORDINATOR
        )

    def add(self, count: int = 1, *, leader_epoch: int = 0, **fields) -> Appended:
        """Append a batch, write, sync and let consumers see it."""
        fields.setdefault("timestamp", self.now.wall_ms)
        appended = self.append(batch_of(count, **fields), leader_epoch=leader_epoch)
        self.commit()
        return appended

    def end_transaction(self, *, commit: bool = True, **fields) -> Appended:
        """Append a coordinator's marker; it is visible then."""
        data = bytearray(
            build_end_transaction(
                commit=commit, coordinator_epoch=0, timestamp=self.now.wall_ms, **fields
            )
        )
        appended = self.log.append(
            data, check_batches(data), leader_epoch=0, now=self.now, origin=Origin.COORDINATOR
        )
        self.commit()
        return appended

    def commit(self) -> None:
        self.log.write()
        self.sync()
        self.log.advance_high_watermark(self.log.durable_offset)

    def sync(self) -> None:
        dirty = self.log.take_dirty(self.now)
        try:
            self.store(dirty)
        except DiskFullError:
            self.log.put_back(dirty)
            raise
        self.log.synced(dirty)

    def store(self, dirty: Dirty) -> None:
        """Put on the device what is dirty."""
        for path in dirty.files:
            with suppress(DiskMissingError):
                self.disk.sync(path)
        for path, content in dirty.checkpoints:
            self.disk.replace(path, content)
        if dirty.directory is not None:
            self.disk.sync_directory(dirty.directory)

    def lower(self, to: int) -> None:
        """Replace the checkpoints that are beyond a cut."""
        self.recovery_point = min(self.recovery_point, to)
        self.log_start = min(self.log_start, to)

    def checkpoint(self) -> None:
        self.recovery_point = self.log.recovery_point
        self.log_start = self.log.log_start

    def retain(self) -> int:
        """Apply retention, after a checkpoint."""
        self.checkpoint()
        return self.log.apply_retention(self.now, up_to=self.recovery_point)

    def reopen(self, *, is_clean: bool = False) -> None:
        maker = self.maker()
        state = run(
            recover_log(
                maker,
                is_clean=is_clean,
                recovery_point=self.recovery_point,
                log_start=self.log_start,
                now_ms=self.now.wall_ms,
                compacted_to=self.compacted_to,
            )
        )
        self.notices = state.notices
        self.log = PartitionLog(state, maker, self.durability)
        self.log.advance_high_watermark(self.log.durable_offset)

    def close(self) -> None:
        self.log.close()
        self.sync()
        self.checkpoint()

    def read(self, offset: int, bytes_max: int = 1 << 20, **options) -> bytes:
        options.setdefault("isolation", Isolation.HIGH_WATERMARK)
        extent = self.log.read(offset, bytes_max=bytes_max, **options).extent
        return b"" if extent is None else self.disk.read(*extent)

    def names(self, suffix: str = "") -> list[str]:
        return [name for name in self.disk.list(self.directory) if name.endswith(suffix)]
