"""Several sync rounds of one directory at once, in any order, and a power cut in between."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from moldau.kernel.disk import DiskMissingError
from moldau.kernel.ids import TopicPartition
from moldau.log.sync_round import SyncRound
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log
from tests.unit.log.test_directory import Host

A, B, C = (TopicPartition(name, 0) for name in "abc")
SEEDS = 300
STEPS_MAX = 60


def steps_of(disk, sync_round: SyncRound, random: Random) -> Iterator[Callable[[], None]]:
    """Walk what threads do for a round: stage by stage, within a stage in any order."""
    for stage in (
        [partial(disk.sync, path) for path in sync_round.files],
        [partial(disk.replace, path, data) for path, data in sync_round.replacements],
        [partial(disk.sync_directory, path) for path in sync_round.directories],
    ):
        random.shuffle(stage)
        yield from stage


class Rounds:
    """A host whose rounds take their time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk(seed, is_journaled=bool(seed % 2))
        self.host = Host(self.disk)
        self.running: list[tuple[SyncRound, Iterator[Callable[[], None]]]] = []
        self.acknowledged: dict[TopicPartition, int] = {}
        self.most = 0

    def run(self) -> None:
        for _ in range(self.random.randint(5, STEPS_MAX)):
            self.random.choices([self.create, self.write, self.begin, self.step], [2, 6, 6, 8])[0]()

    def create(self) -> None:
        partition = TopicPartition("p", len(self.host.core.logs))
        self.host.create(partition)

    def write(self) -> None:
        if logs := sorted(self.host.core.logs):
            # Often the newest, whose names may be on their way.
            chosen = self.random.choice([logs[-1], self.random.choice(logs)])
            self.host.write(chosen, self.random.randint(1, 3))

    def begin(self) -> None:
        sync_round = self.host.core.take_round(self.host.now)
        if sync_round is None:
            return
        files = {path for other, _ in self.running for path in other.files}
        assert not files & set(sync_round.files), "one of two syncs would not hear of a failure"
        self.running.append((sync_round, steps_of(self.disk, sync_round, self.random)))
        self.most = max(self.most, len(self.running))

    def step(self) -> None:
        if not self.running:
            return
        sync_round, steps = chosen = self.random.choice(self.running)
        step = next(steps, None)
        if step is not None:
            with suppress(DiskMissingError):
                step()
            return
        self.running.remove(chosen)
        self.host.core.synced(sync_round)
        for partition, log, _ in sync_round.partitions:
            self.acknowledged[partition] = log.durable_offset


def test_what_any_round_made_durable_survives_a_power_cut() -> None:
    most = 0
    for seed in range(SEEDS):
        rounds = Rounds(seed)
        rounds.run()
        most = max(most, rounds.most)
        rounds.disk.crash()
        host = Host(rounds.disk)
        for partition, offset in rounds.acknowledged.items():
            log = host.core.logs.get(partition)
            assert log is not None, f"seed {seed}: {partition} is lost"
            assert log.log_end >= offset, f"seed {seed}: {partition} ends before {offset}"
            check_log(log, rounds.disk)
    assert most >= 3, "rounds ran beside each other"


@pytest.fixture
def host() -> Host:
    host = Host(MemoryDisk())
    for partition in (A, B):
        host.create(partition)
        host.add(partition)
    return host


def test_a_log_is_in_one_round_at_a_time(host: Host) -> None:
    host.write(A)
    first = host.core.take_round(host.now)
    host.write(A)
    assert host.core.take_round(host.now) is None
    host.write(B)
    second = host.core.take_round(host.now)
    assert [share.partition for share in second.partitions] == [B]
    host.core.synced(second)
    host.core.synced(first)
    assert host.core.logs[A].recovery_point == 2
    assert host.sync()
    assert host.core.logs[A].recovery_point == 3


def test_nothing_begins_while_names_of_a_new_partition_are_synced(host: Host) -> None:
    host.create(C)
    naming = host.core.take_round(host.now)
    host.write(C)
    host.write(A)
    assert host.core.take_round(host.now) is None
    host.core.synced(naming)
    assert {share.partition for share in host.core.take_round(host.now).partitions} == {A, C}


def test_names_that_found_no_room_hold_nothing_up_for_good(host: Host) -> None:
    host.create(C)
    host.core.put_back(host.core.take_round(host.now))
    host.write(A)
    assert [share.partition for share in host.core.take_round(host.now).partitions] == [A]
