"""The laws of transactions over random schedules.

Producers with one transactional id each, and zombies that have the same; partitions that are real
logs; a coordinator that restarts with all or a part of what it had not committed; markers that take
time; requests and answers that get lost, and with the newer protocol requests that come late. The
older protocol can tear a transaction when an EndTxn comes late (KAFKA-17754), so there none does.
"""

import os
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from moldau.coordination.command import DONE
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import ProducerEpoch, TopicPartition
from moldau.log.config import Durability
from moldau.log.errors import AppendError
from moldau.log.producers import Origin
from moldau.records.batch import TRANSACTIONAL
from moldau.records.control import build_end_transaction
from moldau.runtime.memory_disk import MemoryDisk
from moldau.transactions.commands import (
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    Initialized,
    InitProducer,
    VerifyPartitions,
    WriteMarkers,
)
from moldau.transactions.records import record_of
from moldau.transactions.transaction import EPOCH_MAX
from tests.unit.log.logs import TestLog, batch_of
from tests.unit.transactions.transaction_world import TransactionWorld

SEEDS = int(os.environ.get("MOLDAU_TRANSACTION_LAW_SEEDS", "60"))
STEPS = 300
IDS = ("one", "two")
TIMEOUT_S = 40.0
PARTITIONS = [TopicPartition("t", index) for index in range(3)]


class Partition:
    """A partition's log, and what is in it as the laws see it."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        disk = MemoryDisk()
        self.log = TestLog(disk, durability=Durability.PAGE_CACHE, directory=str(partition))
        self.entries: list[tuple[ProducerIdentity, bytes | bool]] = []
        """Values, and for markers whether they commit."""

    def state(self, producer: ProducerIdentity):
        return self.log.log.producers.states.get(producer.id)

    def is_admitted(self, producer: ProducerIdentity) -> bool:
        state = self.state(producer)
        if state is None or producer.epoch > state.producer_epoch:
            return False
        return producer.epoch < state.producer_epoch or state.transaction_first_offset >= 0

    def append(self, producer: ProducerIdentity, sequence: int, value: bytes) -> bool:
        data = batch_of(
            value=value,
            attributes=TRANSACTIONAL,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        try:
            appended = self.log.append(data)
        except AppendError:
            return False
        self.log.log.write()
        if not appended.is_duplicate:
            self.entries.append((producer, value))
        return True

    def mark(self, markers: WriteMarkers) -> None:
        producer = markers.producer
        state = self.state(producer)
        if (
            state is not None
            and state.producer_epoch == producer.epoch
            and state.coordinator_epoch >= 0
            and state.transaction_first_offset < 0
        ):
            return  # it is there, from before a restart
        data = build_end_transaction(
            commit=markers.is_commit,
            coordinator_epoch=0,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=self.log.now.wall_ms,
        )
        self.log.append(
            bytearray(data),
            origin=Origin.COORDINATOR,
            transaction_version=markers.transaction_version,
        )
        self.log.log.write()
        self.entries.append((producer, markers.is_commit))

    def outcomes(self) -> dict[bytes, bool | None]:
        """Return what became of each value: None while that is open."""
        found: dict[bytes, bool | None] = {}
        open_: defaultdict[int, list[tuple[ProducerIdentity, bytes]]] = defaultdict(list)
        epochs: dict[int, int] = {}
        for producer, entry in self.entries:
            if isinstance(entry, bool):
                for writer, value in open_.pop(producer.id, []):
                    assert writer.epoch <= producer.epoch
                    found[value] = entry
                epochs[producer.id] = producer.epoch
                continue
            assert epochs.get(producer.id, -1) <= producer.epoch, "data of a fenced epoch"
            open_[producer.id].append((producer, entry))
            found[entry] = None
        return found


@dataclass
class Attempt:
    """A client's transaction, as far as the client knows."""

    stored: dict[tuple[TopicPartition, bytes], bool] = field(default_factory=dict)
    """What was sent, and whether that it was stored is certain."""
    is_commit: bool | None = None
    is_certain: bool = False


class Client:
    """A producer, which may be a zombie; what it asks may get lost, and its answers too."""

    def __init__(self, model: "Model", id_: str, number: int) -> None:
        self.model = model
        self.id = id_
        self.number = number
        self.version = model.client_version
        self.producer: ProducerIdentity | None = None
        self.attempt = Attempt()
        self.added: set[TopicPartition] = set()
        self.sequences: dict[TopicPartition, int] = {}
        self.is_ending: bool | None = None
        self.is_broken = False
        """Whether it has to begin anew: it was fenced, or does not know where it is."""
        self.waits = False
        """Whether a request is under way, which it may give up."""

    def ask(self, command: Any, then: Any) -> None:
        self.waits = True

        def answered(outcome: Any) -> None:
            self.waits = False
            then(outcome)

        self.model.request(command, answered)

    def step(self) -> None:
        if self.waits and self.model.random.random() < 0.9:
            return
        self.waits = False
        if self.producer is None or self.is_broken:
            self.init()
        elif self.is_ending is not None:
            self.end(self.is_ending)
        elif self.model.random.random() < 0.7:
            self.send()
        elif self.attempt.stored:
            self.end(self.model.random.random() < 0.6)

    def init(self) -> None:
        model = self.model
        knows = self.producer is not None and model.random.random() < 0.5
        command = InitProducer(self.id, int(TIMEOUT_S * 1000), self.producer if knows else None)

        def answered(outcome: Any) -> None:
            if isinstance(outcome, Initialized):
                model.fence(self.id, outcome.producer)
                self.begin(outcome.producer)
                self.is_broken = False
            elif isinstance(outcome, Refusal):
                self.producer = None

        self.ask(command, answered)

    def begin(self, producer: ProducerIdentity) -> None:
        if producer != self.producer:
            self.sequences.clear()
        self.producer = producer
        self.model.attempts.append(self.attempt)
        self.attempt = Attempt()
        self.added.clear()
        self.is_ending = None

    def send(self) -> None:
        model, producer = self.model, self.producer
        assert producer is not None
        partition = model.random.choice(PARTITIONS)
        model.values += 1
        value = b"%d" % model.values
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + 1
        attempt = self.attempt
        attempt.stored[partition, value] = False

        def write() -> None:
            if not model.partitions[partition].append(producer, sequence, value):
                self.is_broken = True
                return
            model.written(self.id, producer)
            if model.random.random() >= model.loss:
                attempt.stored[partition, value] = True
            else:
                self.is_broken = True  # the answer is lost, and it does not ask again

        def admitted(outcome: Any) -> None:
            if outcome is DONE or outcome == frozenset():
                write()
            else:
                self.is_broken = True

        def verify() -> None:
            if model.partitions[partition].is_admitted(producer):
                write()
            elif self.version < 2:
                self.ask(VerifyPartitions(self.id, producer, frozenset({partition})), admitted)
            else:
                add = AddPartitions(self.id, producer, frozenset({partition}), 2, may_wait=True)
                self.ask(add, admitted)

        if self.version < 2 and partition not in self.added:
            self.added.add(partition)
            command: Any = AddPartitions(self.id, producer, frozenset({partition}), 0)
            self.ask(command, lambda outcome: verify() if outcome is DONE else admitted(None))
        else:
            verify()

    def end(self, is_commit: bool) -> None:
        model, producer, attempt = self.model, self.producer, self.attempt
        assert producer is not None
        if is_commit and not all(attempt.stored.values()):
            is_commit = False  # something is not certain: a client aborts then
        self.is_ending = is_commit
        attempt.is_commit = is_commit

        def answered(outcome: Any) -> None:
            if attempt is not self.attempt:
                return
            if isinstance(outcome, ProducerIdentity):
                attempt.is_certain = True
                model.ended(self.id, producer)
                self.begin(outcome)
            elif outcome.code.retriable:
                return
            else:
                self.is_broken = True

        self.ask(EndTransaction(self.id, producer, is_commit, self.version), answered)


class Model:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.version = self.random.choice([0, 1, 2, 2])
        self.client_version = 2 if self.version == 2 and self.random.random() < 0.8 else 0
        rates = [0.0, 0.02, 0.1]
        self.loss = self.random.choice(rates)
        self.delay = self.random.choice(rates) if self.client_version == 2 else 0.0
        self.steps = [self.act] * 10 + [self.commit] * 8 + [self.mark] * 5
        self.steps += [self.deliver_late] * 2 if self.delay else []
        self.steps += [self.wait] * self.random.randrange(2) + [self.crash] * self.random.randrange(
            2
        )
        self.world = TransactionWorld(self.version)
        self.partitions = {each: Partition(each) for each in PARTITIONS}
        self.clients = [Client(self, id_, n) for id_ in IDS for n in range(2)]
        self.attempts: list[Attempt] = []
        self.late: list[Any] = []
        self.values = 0
        self.epochs: dict[str, ProducerIdentity] = {}
        self.fenced: dict[str, set[ProducerIdentity]] = defaultdict(set)
        self.begun: dict[str, float] = {}
        if self.random.random() < 0.3:
            self.nearly_exhaust()

    def nearly_exhaust(self) -> None:
        """Let one producer have few epochs left."""
        w = self.world
        w.ask(InitProducer(IDS[0], int(TIMEOUT_S * 1000)))
        known = w.machine.shelf.transactions[IDS[0]]
        epoch = ProducerEpoch(EPOCH_MAX - self.random.randrange(1, 6))
        w.append(record_of(replace(known, producer_epoch=epoch), w.machine.shelf.record_version))
        w.commit()

    def step(self) -> None:
        self.random.choice(self.steps)()
        self.check()

    def act(self) -> None:
        client = self.random.choice(self.clients)
        if client.number == 0 or self.random.random() < 0.15:
            client.step()

    def request(self, command: Any, then: Any) -> None:
        """Send a request, which may get lost, or come late; so may the answer."""
        chance = self.random.random()
        if chance < self.loss:
            return
        if chance < self.loss + self.delay:
            self.late.append(command)
            return
        self.world.submit(command, then if chance < 1 - self.loss else lambda _: None)

    def deliver_late(self) -> None:
        """A request comes that nobody waits for any more: an add adds, and an end may end."""
        if self.late:
            command = self.late.pop(self.random.randrange(len(self.late)))
            self.world.submit(command, partial(self.late_answer, command))

    def late_answer(self, command: Any, outcome: Any) -> None:
        if isinstance(command, InitProducer) and isinstance(outcome, Initialized):
            self.fence(command.transactional_id, outcome.producer)

    def commit(self) -> None:
        self.world.commit()

    def mark(self) -> None:
        """Write one transaction's markers, or a part of them, and perhaps have it completed."""
        if not self.world.markers:
            return
        number = self.random.randrange(len(self.world.markers))
        markers = self.world.markers[number]
        for partition in sorted(markers.partitions):
            if self.random.random() < 0.2:
                return
            self.partitions[partition].mark(markers)
        del self.world.markers[number]
        complete = CompleteTransaction(markers.transactional_id, markers.producer)
        self.world.submit(complete, lambda _: None)

    def wait(self) -> None:
        seconds = self.random.choice([0.05, 1.0, 1.0, 11.0, TIMEOUT_S])
        wall_seconds = seconds + self.random.choice([0, 0, 10_000.0, -10_000.0])
        self.world.pass_time(seconds, wall_seconds=wall_seconds)

    def crash(self) -> None:
        self.world.crash(self.random.randrange(4))

    # What has to be.

    def fence(self, id_: str, producer: ProducerIdentity) -> None:
        """A producer was given out: nobody before it writes or ends any more."""
        before = self.epochs.get(id_)
        if before is not None and before != producer:
            self.fenced[id_].add(before)
        self.epochs[id_] = producer

    def written(self, id_: str, producer: ProducerIdentity) -> None:
        assert producer not in self.fenced[id_], "a fenced producer has written"

    def ended(self, id_: str, producer: ProducerIdentity) -> None:
        # The same answer may be given again to whoever ended it, but nothing is ended twice.
        known = self.world.machine.shelf.transactions[id_]
        assert known.producer_id != producer.id or known.producer_epoch >= producer.epoch

    def check(self) -> None:
        for partition in self.partitions.values():
            log = partition.log.log
            assert log.log_start <= log.stable_offset <= log.high_watermark <= log.log_end
            partition.outcomes()

    def heal(self) -> None:
        """Nobody begins anything more, and everything that is open ends in time."""
        for _ in range(4):
            self.world.pass_time(TIMEOUT_S + 10)
            self.world.commit()
            while self.world.markers:
                markers = self.world.markers.pop()
                for partition in sorted(markers.partitions):
                    self.partitions[partition].mark(markers)
                complete = CompleteTransaction(markers.transactional_id, markers.producer)
                self.world.submit(complete, lambda _: None)
                self.world.commit()
        for partition in self.partitions.values():
            assert partition.log.log.producers.first_open is None, "a transaction hangs"
        for known in self.world.machine.shelf.transactions.values():
            assert known.is_idle, known

    def judge(self) -> tuple[int, int]:
        """Each transaction is there as a whole or not at all, as its client was told."""
        outcomes = {
            (partition.partition, value): outcome
            for partition in self.partitions.values()
            for value, outcome in partition.outcomes().items()
        }
        committed = aborted = 0
        for attempt in [*self.attempts, *(client.attempt for client in self.clients)]:
            known = {outcomes[place] for place in attempt.stored if place in outcomes}
            assert len(known) <= 1, "torn"
            assert None not in known, "nobody knows how it ended"
            if attempt.is_commit and attempt.is_certain:
                assert all(outcomes.get(place) for place in attempt.stored), "a lost write"
                committed += 1
            elif known == {True}:
                assert attempt.is_commit, "it was not asked for"
            elif known:
                aborted += 1
        if self.version == self.client_version == 2:
            self.judge_epochs()
        return committed, aborted

    def judge_epochs(self) -> None:
        for partition in self.partitions.values():
            seen: set[ProducerIdentity] = set()
            writer: dict[int, ProducerIdentity] = {}
            for producer, entry in partition.entries:
                if not isinstance(entry, bool):
                    writer[producer.id] = producer
                    continue
                assert producer not in seen, "two markers of one epoch (KAFKA-19446)"
                seen.add(producer)
                last = writer.pop(producer.id, None)
                assert last is None or last.epoch + 1 == producer.epoch


def run(seeds: range) -> None:
    committed = aborted = 0
    for seed in seeds:
        model = Model(seed)
        try:
            for _ in range(STEPS):
                model.step()
            model.heal()
            more_committed, more_aborted = model.judge()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        committed += more_committed
        aborted += more_aborted
    assert committed > len(seeds), "hardly anything is committed"
    assert aborted > len(seeds), "hardly anything is aborted"


@pytest.mark.parametrize("group", range(4))
def test_the_laws(group: int) -> None:
    run(range(group * SEEDS // 4, (group + 1) * SEEDS // 4))


@pytest.mark.long
def test_the_laws_over_many_schedules() -> None:
    run(range(1000, 1000 + SEEDS * 10))
