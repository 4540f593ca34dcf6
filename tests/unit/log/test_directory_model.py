"""A log directory on a disk with faults: whatever happens when, what was acknowledged is there."""

import os
from random import Random

import pytest

from moldau.kernel.ids import TopicPartition
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from moldau.simulation.laws.log import check_log, stored_batches
from tests.unit.log.test_directory import Host

SEEDS = int(os.environ.get("MOLDAU_DIRECTORY_SEEDS", "60"))
STEPS = 60
PARTITIONS = [TopicPartition("t", number) for number in range(3)]


class Model:
    """A host that does things at random, and remembers what must survive."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk(seed)
        self.host = Host(self.disk)
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        self.doubtful: set[TopicPartition] = set()  # being created or deleted in a crash

    def run(self) -> None:
        for _ in range(STEPS):
            step = self.random.choice(
                [self.write] * 6
                + [self.commit] * 4
                + [self.checkpoint, self.truncate, self.create, self.create, self.delete]
                + [self.tick, self.delete_records, self.start_over, self.restart, self.crash]
            )
            if self.random.random() < 0.1:
                self.disk.lose_power(after=self.random.randint(0, 12))
            try:
                step()
                self.check()
            except PowerLostError:
                self.reopen()

    def pick(self) -> TopicPartition | None:
        logs = list(self.host.core.logs)
        return self.random.choice(logs) if logs else None

    def create(self) -> None:
        missing = [p for p in PARTITIONS if p not in self.host.core.logs]
        if missing:
            partition = self.random.choice(missing)
            self.doubtful.add(partition)
            self.host.create(partition)
            self.acknowledged[partition] = {}
            self.doubtful.discard(partition)

    def delete(self) -> None:
        if partition := self.pick():
            self.doubtful.add(partition)
            del self.acknowledged[partition]
            self.host.core.delete(partition)
            self.doubtful.discard(partition)

    def write(self) -> None:
        if partition := self.pick():
            self.host.write(partition, self.random.randint(1, 8))

    def commit(self) -> None:
        while self.host.sync():
            pass
        for partition, log in self.host.core.logs.items():
            log.advance_high_watermark(log.durable_offset)
            self.acknowledged[partition] = self.stored(partition)

    def checkpoint(self) -> None:
        self.host.checkpoint(everything=self.random.random() < 0.5)

    def tick(self) -> None:
        self.host.tick(self.random.random() * 2)

    def truncate(self) -> None:
        if partition := self.pick():
            log = self.host.core.logs[partition]
            to = self.random.randint(log.log_start, log.log_end)
            cut = self.host.core.find_cut(partition, to)
            self.forget(partition, cut)
            self.host.truncate(partition, to)

    def start_over(self) -> None:
        if partition := self.pick():
            at = self.random.randint(0, 50)
            self.acknowledged[partition] = {}
            self.host.store(self.host.core.lower(partition, 0))
            self.host.core.start_over(partition, at, self.host.now)

    def delete_records(self) -> None:
        if partition := self.pick():
            log = self.host.core.logs[partition]
            log.delete_records(self.random.randint(log.log_start, log.high_watermark))
            self.host.store(self.host.core.note_log_start(partition))

    def forget(self, partition: TopicPartition, cut: int) -> None:
        known = self.acknowledged[partition]
        self.acknowledged[partition] = {base: d for base, d in known.items() if base < cut}

    def restart(self) -> None:
        assert self.host.close()
        self.acknowledged = {p: self.stored(p) for p in self.host.core.logs}
        if self.random.random() < 0.5:
            self.disk.crash()
        self.open()
        assert self.host.found.is_clean

    def crash(self) -> None:
        self.disk.lose_power(after=0)
        self.host.disk.list("")

    def reopen(self) -> None:
        self.disk.crash()
        self.open()

    def open(self) -> None:
        self.host.open()
        self.host.now = self.host.now._replace(monotonic=self.host.now.monotonic + 1)
        core = self.host.core
        assert core.closed == {}, core.closed
        found = {}
        for partition in core.logs:
            stored = self.stored(partition)
            known = self.acknowledged.get(partition, {})
            start = core.logs[partition].segments[0].base_offset
            for base, data in known.items():
                if base >= start or partition not in self.doubtful:
                    assert stored.get(base) == data, f"{partition}: offset {base} is lost"
            found[partition] = stored
        for partition, known in self.acknowledged.items():
            assert partition in core.logs or not known, f"{partition} is lost"
        self.acknowledged = found
        self.doubtful.clear()
        self.check()
        for partition, log in core.logs.items():
            log.advance_high_watermark(log.durable_offset)
            assert partition in PARTITIONS

    def check(self) -> None:
        for log in self.host.core.logs.values():
            check_log(log, self.disk)

    def stored(self, partition: TopicPartition) -> dict[int, bytes]:
        log = self.host.core.logs[partition]
        return {batch.base_offset: data for _, batch, data in stored_batches(log, self.disk)}


@pytest.mark.long
def test_a_directory_keeps_what_it_acknowledged() -> None:
    for seed in range(SEEDS):
        try:
            Model(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
