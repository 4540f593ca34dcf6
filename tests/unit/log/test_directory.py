"""A log directory as its shell drives it, on a disk in memory and on one with faults."""

from contextlib import suppress
from random import Random

import pytest

from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskFailedError, DiskMissingError
from moldau.kernel.ids import TopicId, TopicPartition
from moldau.log.checkpoints import parse_offsets
from moldau.log.config import Durability, LogConfig
from moldau.log.directory import LogDirectory, remove_folder
from moldau.log.errors import DirectoryRefusedError, PartitionOfflineError, StorageFullError
from moldau.log.identity import MetaProperties
from moldau.log.index_pages import PageCache
from moldau.log.opened_partition import open_partition
from moldau.log.survey import claim, survey
from moldau.records.batch import validate
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log
from tests.unit.log.logs import START_MS, batch_of, run

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
TOPIC_ID = TopicId(bytes(range(16)))
IDENTITY = MetaProperties("cluster", 1, bytes(range(16)))
POINTS = "recovery-point-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"
HIGH = "replication-offset-checkpoint"
CONFIG = LogConfig(segment_bytes=2000)


class Host:
    """Plays the shell: everything that waits is done at once."""

    def __init__(self, disk, durability: Durability = Durability.FSYNC) -> None:
        self.disk = disk
        self.durability = durability
        self.now = Instant(0.0, START_MS)
        self.open()

    def open(self) -> None:
        self.found = survey(self.disk)
        self.identity = claim(self.disk, self.found, IDENTITY)
        self.notices = self.found.notices
        self.core = LogDirectory(
            self.disk,
            self.found,
            durability=self.durability,
            cache=PageCache(1 << 20),
            entropy=Random(str(self.disk.list(""))).randbytes,
        )
        for partition in [*self.found.partitions, *self.found.futures]:
            steps = open_partition(
                self.disk, self.found, partition, CONFIG, now_ms=self.now.wall_ms
            )
            try:
                opened = run(steps)
            except Exception as error:  # noqa: BLE001 - as the shell does
                self.core.close_partition(partition, str(error))
            else:
                self.notices += opened.state.notices
                self.core.adopt(opened)

    def tick(self, seconds: float) -> None:
        self.now = Instant(self.now.monotonic + seconds, self.now.wall_ms + int(seconds * 1000))

    def create(self, partition: TopicPartition):
        self.store(self.core.lower(partition, 0))
        log = self.core.create(partition, TOPIC_ID, CONFIG, self.now)
        self.core.make_folder(partition)
        return log

    def write(self, partition: TopicPartition, count: int = 1) -> int:
        log = self.core.get(partition)
        data = batch_of(count, timestamp=self.now.wall_ms)
        end = log.append(data, validate(data), leader_epoch=0, now=self.now).last_offset + 1
        log.write()
        self.core.note_change(partition, self.now)
        return end

    def add(self, partition: TopicPartition, count: int = 1) -> int:
        end = self.write(partition, count)
        self.sync()
        log = self.core.get(partition)
        log.advance_high_watermark(log.durable_offset)
        return end

    def sync(self) -> bool:
        sync_round = self.core.take_round(self.now)
        if sync_round is None:
            return False
        for path in sync_round.files:
            with suppress(DiskMissingError):
                self.disk.sync(path)
        for path, data in sync_round.replacements:
            with suppress(DiskMissingError):
                self.disk.replace(path, data)
        for path in sync_round.directories:
            with suppress(DiskMissingError):
                self.disk.sync_directory(path)
        self.core.synced(sync_round)
        return True

    def store(self, checkpoints) -> list[str]:
        for checkpoint in checkpoints:
            self.disk.replace(checkpoint.path, checkpoint.render())
        self.core.synced_checkpoints(checkpoints)
        return [checkpoint.path for checkpoint in checkpoints]

    def checkpoint(self, **options) -> list[str]:
        return self.store(self.core.take_checkpoints(self.now, **options))

    def truncate(self, partition: TopicPartition, to: int) -> None:
        self.store(self.core.lower(partition, self.core.find_cut(partition, to)))
        self.core.truncate(partition, to, self.now)

    def close(self) -> bool:
        self.core.close()
        self.sync()
        self.checkpoint(everything=True)
        return self.core.mark_clean(self.disk, 7)

    def rows(self, path: str):
        return parse_offsets(path, self.disk.read(path, 0, 9999))


def test_what_was_closed_in_good_order_is_there_again() -> None:
    host = Host(MemoryDisk())
    for partition in (A, B):
        host.create(partition)
        host.add(partition, 3)
    assert host.close()
    host.open()
    assert host.found.is_clean
    assert host.found.broker_epoch == 7
    assert host.notices == []
    assert list(host.core.logs) == [A, B]
    assert host.core.topic_ids == {A: TOPIC_ID, B: TOPIC_ID}
    assert [log.high_watermark for log in host.core.logs.values()] == [3, 3]
    assert ".kafka_cleanshutdown" not in host.disk.list("")


def test_a_new_partition_is_durable_with_the_first_commit() -> None:
    disk = SimulatedDisk(1)
    host = Host(disk)
    for number in range(20):
        host.create(TopicPartition("t", number))
    before = disk.operations
    end = host.add(TopicPartition("t", 19), 2)
    assert disk.operations - before < 20 * 5  # one commit, not one after the other
    disk.crash()
    host.open()
    assert len(host.core.logs) == 20
    assert host.core.get(TopicPartition("t", 19)).log_end == end
    assert set(host.core.topic_ids.values()) == {TOPIC_ID}


def test_recovery_points_are_written_every_second_and_at_every_roll() -> None:
    host = Host(MemoryDisk())
    host.create(A)
    host.add(A)
    assert POINTS in host.checkpoint()
    host.add(A)
    host.tick(0.5)
    assert host.checkpoint() == []
    host.tick(0.5)
    assert host.checkpoint() == [POINTS]
    assert host.rows(POINTS) == {A: 2}
    while len(host.core.get(A).segments) == 1:
        host.add(A, 5)
    assert host.core.is_checkpoint_due(host.now)
    assert host.checkpoint() == [POINTS]
    assert host.rows(POINTS) == {A: host.core.get(A).log_end}
    host.tick(0.1)
    assert host.checkpoint() == []


def test_watermarks_and_log_starts_are_written_too() -> None:
    host = Host(MemoryDisk())
    host.create(A)
    host.add(A, 9)
    host.core.get(A).delete_records(4)
    host.store(host.core.note_log_start(A))
    assert host.rows(STARTS) == {A: 4}
    host.checkpoint()
    assert host.rows(HIGH) == {A: 9}
    host.open()
    assert host.core.get(A).log_start == 4
    assert host.core.get(A).high_watermark == 9


def test_the_recovery_point_is_lower_on_the_device_before_the_log_is_cut() -> None:
    disk = SimulatedDisk(3)
    host = Host(disk)
    host.create(A)
    for _ in range(6):
        host.add(A, 3)
    host.checkpoint()
    assert host.core.lower(A, 18) == []
    host.truncate(A, 7)
    assert host.rows(POINTS)[A] == host.core.get(A).log_end == 6
    host.write(A)
    disk.crash()
    host.open()
    assert host.core.closed == {}
    check_log(host.core.get(A), disk)


def test_a_deleted_partition_is_renamed_and_its_removal_finished_later() -> None:
    host = Host(MemoryDisk())
    host.create(A)
    host.add(A, 3)
    host.checkpoint()
    folder = host.core.delete(A)
    assert A not in host.core.logs
    assert host.sync()
    host.open()
    assert host.found.deleted == [folder]
    assert host.core.logs == {}
    for _ in remove_folder(host.disk, folder):
        pass
    host.open()
    assert host.found.deleted == []


def test_a_name_that_is_used_again_inherits_nothing() -> None:
    disk = SimulatedDisk(5)
    host = Host(disk)
    host.create(A)
    host.add(A, 30)
    host.core.get(A).delete_records(20)
    host.checkpoint(everything=True)
    host.core.delete(A)
    host.create(A)
    host.add(A, 2)
    disk.crash()
    host.open()
    assert host.core.closed == {}
    log = host.core.get(A)
    assert (log.log_start, log.log_end) == (0, 2)


def test_damage_closes_only_its_partition_and_no_clean_start_hides_it() -> None:
    host = Host(MemoryDisk())
    for partition in (A, B):
        host.create(partition)
        host.add(partition, 3)
    host.checkpoint()
    host.disk._files["a-0/00000000000000000000.log"][8:12] = bytes(4)
    host.open()
    assert list(host.core.closed) == [A]
    with pytest.raises(PartitionOfflineError, match="below the synced offset"):
        host.core.get(A)
    assert host.add(B) == 4
    assert not host.close()
    host.open()
    assert list(host.core.closed) == [A]
    folder = host.core.set_aside(A)
    assert folder.endswith("-stray")
    assert host.disk.size(f"{folder}/00000000000000000000.log")
    host.create(A)
    assert host.add(A) == 1
    assert host.close()
    host.open()
    assert [str(notice) for notice in host.notices] == [
        f"{folder}/: is a stray replica; left alone"
    ]


def test_after_a_failure_nothing_is_done_any_more() -> None:
    host = Host(MemoryDisk())
    host.create(A)
    host.write(A)
    host.core.fail(DiskFailedError("a-0/x", "sync failed"))
    assert not host.sync()
    assert host.checkpoint(everything=True) == []
    assert not host.core.mark_clean(host.disk, 1)
    with pytest.raises(PartitionOfflineError, match="sync failed"):
        host.core.get(A)


def test_in_the_page_cache_only_a_full_segment_and_the_intervals_are_synced() -> None:
    host = Host(MemoryDisk(), Durability.PAGE_CACHE)
    log = host.create(A)
    assert host.sync()  # its names
    host.write(A)
    assert not host.sync()
    log.config = LogConfig(flush_ms=500)
    host.write(A)
    host.tick(1)
    assert not host.sync()
    host.core.tick(host.now)
    assert host.sync()
    assert log.recovery_point == 2
    log.config = LogConfig(flush_messages=2)
    host.write(A)
    assert not host.sync()
    host.write(A)
    assert host.sync()
    log.config = CONFIG
    while len(log.segments) == 1:
        host.write(A, 5)
    assert host.sync()


def test_without_room_a_partition_gets_no_folder() -> None:
    disk = MemoryDisk(capacity_bytes=600)
    host = Host(disk)
    disk.append("ballast", [bytes(disk.free_bytes())])
    with pytest.raises(StorageFullError):
        host.create(A)
    assert "a-0/" not in disk.list("")
    disk.remove("ballast")
    host.core.make_folder(A)
    assert host.add(A) == 1


def test_a_commit_without_room_for_a_checkpoint_comes_again() -> None:
    host = Host(MemoryDisk())
    log = host.create(A)
    host.write(A)
    sync_round = host.core.take_round(host.now)
    host.core.put_back(sync_round)
    assert log.recovery_point == 0
    assert host.sync()
    assert log.recovery_point == 1


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (MetaProperties("other", 1), "belongs to cluster other, and this node to cluster"),
        (MetaProperties("cluster", 2), "belongs to node 2, and this is node 1"),
    ],
)
def test_a_directory_of_somebody_else_is_refused(identity: MetaProperties, reason: str) -> None:
    from moldau.log.identity import render_meta_properties

    disk = MemoryDisk()
    disk.append("meta.properties", [render_meta_properties(identity)])
    disk.append(".kafka_cleanshutdown", [b""])
    with pytest.raises(DirectoryRefusedError, match=reason):
        Host(disk)
    assert ".kafka_cleanshutdown" in disk.list("")


def test_a_directory_keeps_its_id() -> None:
    disk = MemoryDisk()
    disk.append("meta.properties", [b"cluster.id=cluster\nnode.id=1\nversion=1\n"])
    assert Host(disk).identity == IDENTITY
    assert b"directory.id=AAECAwQFBgcICQoLDA0ODw" in disk.read("meta.properties", 0, 999)
    other = MetaProperties("cluster", 1, bytes(16))
    assert claim(disk, survey(disk), other) == IDENTITY


def test_a_partition_that_is_never_written_leaves_nothing() -> None:
    disk = MemoryDisk()
    host = Host(disk)
    host.core.create(A, TOPIC_ID, CONFIG, host.now)
    host.core.note_change(A, host.now)
    assert host.core.take_round(host.now) is None
    assert "a-0/" not in disk.list("")
    assert host.core.delete(A) is None
    assert A not in host.core.logs
