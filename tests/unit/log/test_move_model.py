"""A log moves between two disks with faults: nothing acknowledged is lost, wherever it stops."""

import os
from random import Random

import pytest

from moldau._native.records import check_batches
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log import move
from moldau.log.folders import FolderState, parse_folder
from moldau.log.move import Move, Stage
from moldau.log.partition import PartitionLog
from moldau.log.producers import Origin
from moldau.records.batch import validate
from moldau.records.control import build_end_transaction
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from moldau.simulation.laws.log import check_log, stored_batches
from tests.unit.log.logs import batch_of
from tests.unit.log.test_directory import TOPIC_ID, Host

SEEDS = int(os.environ.get("MOLDAU_MOVING_SEEDS", "10"))
STEPS = 120
P = TopicPartition("t", 0)
TRANSACTIONAL = 1 << 4


class Model:
    """Two directories, one partition; `here` is the number of the one that has its log."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.hosts = [Host(SimulatedDisk(seed)), Host(SimulatedDisk(seed + 1))]
        self.here = 0
        self.move: Move | None = None
        self.moved = 0
        self.acknowledged: dict[int, bytes] = {}
        self.hosts[0].create(P)

    @property
    def host(self) -> Host:
        return self.hosts[self.here]

    @property
    def log(self) -> PartitionLog:
        return self.host.core.get(P)

    def run(self) -> None:
        for _ in range(STEPS):
            step = self.random.choice(
                [self.write] * 4
                + [self.advance] * 6
                + [self.commit] * 3
                + [self.transact, self.checkpoint, self.delete_records, self.restart, self.crash]
            )
            if self.random.random() < 0.1:
                disk = self.random.choice(self.hosts).disk
                disk.lose_power(after=self.random.randint(0, 12))
            try:
                step()
                self.check()
            except PowerLostError:
                self.reopen(is_power_lost=self.random.random() < 0.8)

    # What a broker does.

    def write(self) -> None:
        producer_id = self.random.choice([-1, 3, 4])
        self.append(producer_id)

    def append(self, producer_id: int, attributes: int = 0) -> None:
        fields = {}
        if producer_id >= 0:
            state = self.log.producers.states.get(producer_id)
            sequence = 0 if state is None else state.next_sequence
            fields = {"producer_epoch": 0, "base_sequence": sequence, "producer_id": producer_id}
        count = self.random.randint(1, 5)
        value = self.random.randbytes(50)
        data = batch_of(count, value=value, attributes=attributes, **fields)
        self.log.append(data, validate(data), leader_epoch=0, now=self.host.now)
        self.note()

    def transact(self) -> None:
        """Begin or go on with a transaction, or end it."""
        state = self.log.producers.states.get(9)
        if state is None or state.transaction_first_offset < 0 or self.random.random() < 0.5:
            self.append(9, TRANSACTIONAL)
            return
        data = bytearray(
            build_end_transaction(
                commit=self.random.random() < 0.5,
                coordinator_epoch=0,
                producer_id=9,
                producer_epoch=0,
                timestamp=self.host.now.wall_ms,
            )
        )
        checked = check_batches(data)
        origin = Origin.COORDINATOR
        self.log.append(data, checked, leader_epoch=0, now=self.host.now, origin=origin)
        self.note()

    def note(self) -> None:
        self.log.write()
        self.host.core.note_change(P, self.host.now)

    def commit(self) -> None:
        self.commit_all(self.random.choice(self.hosts))

    def commit_all(self, host: Host) -> None:
        while host.sync():
            pass
        log = self.log
        log.advance_high_watermark(log.durable_offset)
        self.acknowledged |= {
            base: data for base, data in self.stored().items() if base < log.high_watermark
        }

    def checkpoint(self) -> None:
        self.random.choice(self.hosts).checkpoint(everything=self.random.random() < 0.5)

    def delete_records(self) -> None:
        if self.random.random() < 0.3:
            log = self.log
            log.delete_records(Offset(self.random.randint(log.log_start, log.high_watermark)))
            self.host.store(self.host.core.note_log_start(P))

    # The move, with its syncs in between.

    def advance(self) -> None:
        if self.move is None:
            source, target = self.host, self.hosts[1 - self.here]
            move = Move(P, source.core, target.core)
            if P not in target.core.futures:
                target.store(target.core.lower(P, Offset(0)))
                move.begin(move.start, source.now)
            self.move = move
            return
        source, target = self.source_and_target()
        match self.move.stage:
            case Stage.COPYING:
                extent = self.move.next_extent()
                if self.move.is_overtaken:
                    target.store(target.core.lower(P, Offset(0)))
                    target.core.start_over(P, self.move.start, target.now)
                elif extent is not None:
                    self.move.take(source.disk.read(*extent), target.now)
                else:
                    self.switch()
            case Stage.SWITCHED:
                self.commit_all(target)
                target.checkpoint(everything=True)
                self.move.retire()
            case Stage.RETIRED:
                self.commit_all(source)
                self.move.promote()
            case Stage.PROMOTED:
                self.commit_all(target)
                self.move.finish()
                self.move = None
                self.moved += 1

    def switch(self) -> None:
        assert self.move is not None
        before = self.log
        log = self.move.switch(self.host.now)
        self.here = 1 - self.here
        known = [each.producers.states for each in (before, log)]
        # A transaction that began below the log start begins there, or is over.
        for producer_id, state in known[0].items():
            assert known[1][producer_id].next_sequence == state.next_sequence
        assert (log.log_start, log.log_end) == (before.log_start, before.log_end)
        assert (log.high_watermark, log.latest_epoch) == (
            before.high_watermark,
            before.latest_epoch,
        )

    def source_and_target(self) -> tuple[Host, Host]:
        assert self.move is not None
        pair = self.hosts if self.hosts[0].core is self.move.source else self.hosts[::-1]
        return pair[0], pair[1]

    # Ends and beginnings.

    def restart(self) -> None:
        for host in self.hosts:
            assert host.close()
        self.reopen(is_power_lost=self.random.random() < 0.5)

    def crash(self) -> None:
        self.host.disk.lose_power(after=0)
        self.host.disk.list("")

    def reopen(self, *, is_power_lost: bool) -> None:
        """All disks lose power at once, or only the process was killed."""
        for host in self.hosts:
            if is_power_lost:
                host.disk.crash()
            else:
                host.disk.revive()
        for host in self.hosts:
            host.open()
        self.move = None
        logs = [n for n, h in enumerate(self.hosts) if P in h.core.logs and P not in h.core.futures]
        assert len(logs) <= 1, "two logs of a partition"
        copies = [n for n, host in enumerate(self.hosts) if P in host.core.futures]
        if logs:
            [self.here] = logs
            for number in copies:
                self.resume(self.hosts[number])
        elif copies:
            [self.here] = copies
            self.host.core.futures.discard(P)
            self.host.core.promote(P)
            while self.host.sync():
                pass
        else:
            assert not self.acknowledged, "the log is lost"
            self.here = 0
            self.hosts[0].create(P)
        if P not in self.host.core.topic_ids:
            self.host.core.set_topic_id(P, TOPIC_ID)
        self.log.advance_high_watermark(self.log.durable_offset)
        self.check()

    def resume(self, target: Host) -> None:
        move = Move(P, self.host.core, target.core)
        if move.is_resumable:
            target.truncate(P, self.log.log_end)
            target.core.sync_soon(P)
            while target.sync():
                pass
        else:
            target.core.delete(P)
            # As a broker waits for it: a copy that comes back has other records than the log.
            while target.sync():
                pass

    # Laws.

    def stored(self) -> dict[int, bytes]:
        with self.host.disk.without_faults():
            return {b.base_offset: d for _, b, d in stored_batches(self.log, self.host.disk)}

    def check(self) -> None:
        stored = self.stored()
        start = self.log.log_start
        self.acknowledged = {b: d for b, d in self.acknowledged.items() if b >= start}
        for base, data in self.acknowledged.items():
            assert stored.get(base) == data, f"offset {base} is lost"
        with self.host.disk.without_faults():
            check_log(self.log, self.host.disk)
        names = [name[:-1] for host in self.hosts for name in names_of(host) if name[-1] == "/"]
        plain = [n for n in names if (f := parse_folder(n)) and f.state is FolderState.IN_USE]
        assert len(plain) <= 1, "two folders with the log's name"


def names_of(host: Host) -> list[str]:
    with host.disk.without_faults():
        return list(host.disk.list(""))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_acknowledged_is_lost(seed: int, monkeypatch) -> None:
    monkeypatch.setattr(move, "SLICE_BYTES", 600)
    Model(seed).run()


def test_logs_do_move(monkeypatch) -> None:
    """The model would see nothing if no move came to its end."""
    monkeypatch.setattr(move, "SLICE_BYTES", 600)
    models = [Model(seed) for seed in range(SEEDS)]
    for model in models:
        model.run()
    assert sum(model.moved for model in models) >= SEEDS // 2


class Hasty(Model):
    """Does not sync the copy before the log goes."""

    def commit_all(self, host: Host) -> None:
        if self.move is None or self.move.stage is Stage.COPYING:
            super().commit_all(host)


def test_the_model_sees_a_copy_that_was_not_synced(monkeypatch) -> None:
    monkeypatch.setattr(move, "SLICE_BYTES", 600)

    def run() -> None:
        for seed in range(200):
            Hasty(seed).run()

    with pytest.raises(AssertionError):
        run()
