"""A cluster and Spark drivers, small enough to crash them between any two steps."""

import random
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.pipelines.connector.sink.errors import (
    FencedRunError,
    LedgerTakenError,
    LostTransactionError,
    OldCheckpointError,
    UndecidedBatchError,
)
from moldau.pipelines.connector.sink.ledger import (
    EMPTY,
    Ledger,
    OpenTransaction,
    decode,
    encode,
)
from moldau.pipelines.connector.sink.ledger_copy import LedgerCopy
from moldau.pipelines.connector.sink.names import transactional_id
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome
from moldau.pipelines.connector.sink.protocol import BatchKind, BatchOfRun, abort, admit, commit
from moldau.pipelines.connector.sink.steps import (
    Append,
    AreOpen,
    EndAll,
    Fence,
    FindAbandoned,
    FindOpen,
    OpenLedger,
    Pause,
    Program,
    ReadLedger,
    Step,
    ask,
)
from tests.unit.pipelines.connector.ledger_topic import LedgerTopic

KEY = "query"
BATCHES = 3
WORKERS = 2
"""Processes that do task after task, of run after run, and keep what they have read."""


@dataclass(frozen=True)
class Begin(Step[OpenTransaction]):
    """What a task does besides the protocol: InitProducerId, and then its rows."""

    transactional_id: str
    rows: tuple[int, int]


@dataclass(frozen=True)
class Write(Step[None]):
    transaction: OpenTransaction
    rows: tuple[int, int]


@dataclass
class Coordinated:
    """What the coordinator knows of a transactional id."""

    epoch: int = 0
    state: str = "Empty"
    rows: list[tuple[int, int]] = field(default_factory=list)


class TaskFailed(Exception):  # noqa: N818 - as in Spark's words
    """A task's transaction is not its own any more."""


class BrokerGone(Exception):  # noqa: N818
    """A request was not answered; it may have been performed."""


@dataclass
class Cluster:
    """Transactions with the epochs of transaction.version 1 or 2, and the ledgers' topic."""

    is_v2: bool
    chance: random.Random
    ids: dict[str, Coordinated] = field(default_factory=dict)
    visible: Counter[tuple[int, int]] = field(default_factory=Counter)
    ledgers: list[Ledger] = field(default_factory=lambda: [EMPTY])
    """All that the query's ledger has said."""
    ledger_owner: object = None
    copies: list[LedgerCopy] = field(default_factory=lambda: [LedgerCopy() for _ in range(WORKERS)])

    def __post_init__(self) -> None:
        self.topic = LedgerTopic(self.chance)

    def perform(  # noqa: C901, PLR0911, PLR0912 - a step each
        self, step: Step[Any], who: object
    ) -> Any:
        match step:
            case ReadLedger():
                # Readers may be behind, but see all that is before what they see.
                found = self.read_ledger(who, waits=False)
                assert found in self.ledgers, found
                return found
            case OpenLedger():
                self.ledger_owner = who
                found = self.read_ledger(who, waits=True)
                assert found == self.ledgers[-1], found
                return found
            case Append(_, ledger):
                assert ledger is not None
                is_owner = self.ledger_owner is who
                self.topic.end(self.topic.write(KEY, encode(ledger)), is_commit=is_owner)
                if not is_owner:
                    raise LedgerTakenError
                self.ledgers.append(ledger)
            case AreOpen(transactions):
                return all(self.is_open(each) for each in transactions)
            case EndAll():
                assert isinstance(who, Process)
                outcomes, who.outcomes = who.outcomes, []
                return outcomes
            case FindOpen():
                return sorted(name for name, each in self.ids.items() if each.state == "Ongoing")
            case Fence(names):
                for name in names:
                    self.init(name)
            case Begin(name):
                return OpenTransaction(name, 1, self.init(name))
            case Write(transaction, rows):
                known = self.ids[transaction.transactional_id]
                if known.epoch != transaction.epoch:
                    raise TaskFailed
                known.state = "Ongoing"
                known.rows.append(rows)
            case FindAbandoned():
                return []
            case Pause():
                pass
            case _:
                raise AssertionError(step)
        return None

    def read_ledger(self, who: object, *, waits: bool) -> Ledger:
        """Read on with what a worker has read before, which may be of another run."""
        assert isinstance(who, Process)
        who.copy = who.copy or self.chance.choice(self.copies)
        self.topic.read(who.copy, waits=waits, between=lambda: None)
        found = who.copy.ledgers.get(KEY)
        return EMPTY if found is None else decode(found.value)

    def trouble_ledgers(self) -> None:
        """Let other queries write to the topic, hold up its readers, and let it be compacted."""
        dice = self.chance.random()
        if dice < 0.5:
            is_tombstone = self.chance.random() < 0.3
            self.topic.write("other", None if is_tombstone else b"something")
        elif dice < 0.7:
            self.topic.end_all()
        else:
            self.topic.compact()

    def is_open(self, transaction: OpenTransaction) -> bool:
        known = self.ids[transaction.transactional_id]
        return known.state == "Ongoing" and known.epoch == transaction.epoch

    def init(self, name: str) -> int:
        known = self.ids.setdefault(name, Coordinated(epoch=-1))
        if known.state == "Ongoing":
            self.abort(known)
        known.epoch += 1
        known.state = "Empty"
        return known.epoch

    def abort(self, known: Coordinated) -> None:
        """As a timeout or another producer does it: the epoch fences whoever wrote."""
        known.epoch += 1
        known.state = "CompleteAbort"
        known.rows.clear()

    def end(self, transaction: OpenTransaction, *, is_commit: bool) -> TransactionOutcome:
        known = self.ids[transaction.transactional_id]
        wanted = "CompleteCommit" if is_commit else "CompleteAbort"
        is_ended = known.state.startswith("Complete")
        is_retry = self.is_v2 and is_ended and known.epoch == transaction.epoch + 1
        if not is_retry and known.epoch != transaction.epoch:
            return TransactionOutcome.UNKNOWN
        if known.state == "Ongoing":
            if is_commit:
                self.visible.update(known.rows)
            known.rows.clear()
            known.state = wanted
            known.epoch += self.is_v2
        is_committed = known.state == "CompleteCommit"
        return TransactionOutcome.COMMITTED if is_committed else TransactionOutcome.ABORTED

    def time_out(self) -> None:
        names = sorted(name for name, each in self.ids.items() if each.state == "Ongoing")
        if names:
            self.abort(self.ids[self.chance.choice(names)])


class Process:
    """A program that is being performed, step by step."""

    def __init__(self, program: Program[Any]) -> None:
        self.program = program
        self.step: Step[Any] | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self.is_over = False
        self.outcomes: list[TransactionOutcome] = []
        self.copy: LedgerCopy | None = None
        self._go(lambda: next(program))

    def _go(self, resume: Any) -> None:
        try:
            self.step = resume()
        except StopIteration as end:
            self.result, self.is_over = end.value, True
        except Exception as error:  # noqa: BLE001 - whoever waits for it looks at it
            self.error, self.is_over = error, True

    def interrupt(self) -> None:
        """Let the step end in an error that says nothing about what was done."""
        self._go(lambda: self.program.throw(BrokerGone()))

    def advance(self, cluster: Cluster) -> None:
        assert self.step is not None
        if isinstance(self.step, EndAll) and len(self.outcomes) < len(self.step.transactions):
            # One after the other: crashes and others' steps come between.
            each = self.step.transactions[len(self.outcomes)]
            self.outcomes.append(cluster.end(each, is_commit=self.step.is_commit))
            return
        try:
            answer = cluster.perform(self.step, self)
        except (LedgerTakenError, TaskFailed) as error:
            thrown = error
            self._go(lambda: self.program.throw(thrown))
        else:
            self._go(lambda: self.program.send(answer))


def task_program(batch: BatchOfRun, partition: int, attempt: int) -> Program[Any]:
    generation = yield from admit(batch)
    if generation is None:
        return None
    name = transactional_id(KEY, generation, partition, attempt)
    rows = (batch.batch, partition)
    transaction = yield from ask(Begin(name, rows))
    yield from ask(Write(transaction, rows))
    return transaction


class Driver:
    """One run of the query: batch after batch, each with tasks that may be tried again."""

    def __init__(self, run: str, world: "World") -> None:
        self.run = run
        self.world = world
        self.tasks: dict[int, Process] = {}
        self.end: Process | None = None
        self.error: Exception | None = None
        self._life = self._live()
        next(self._life, None)

    def _live(self) -> Generator[None, None, None]:
        for number in range(self.world.checkpoint, BATCHES):
            batch = BatchOfRun(KEY, self.run, number, BatchKind.STREAM)
            attempts = Counter[int]()
            messages: dict[int, OpenTransaction | None] = {}
            while len(messages) < self.world.partitions:
                for index in range(self.world.partitions):
                    if index in messages:
                        continue
                    task = self.tasks.get(index)
                    if task is None:
                        program = task_program(batch, index, attempts[index])
                        self.tasks[index] = Process(program)
                    elif task.is_over:
                        del self.tasks[index]
                        if task.error is None:
                            messages[index] = task.result
                        elif attempts[index] == 3 or not isinstance(task.error, TaskFailed):
                            self.error = task.error
                            return
                        else:
                            attempts[index] += 1
                yield
            transactions = [each for each in messages.values() if each is not None]
            self.end = Process(commit(batch, transactions))
            while not self.end.is_over:
                yield
            if self.end.error is not None:
                self.error = self.end.error
                self.end = Process(abort(batch, transactions))
                while not self.end.is_over:
                    yield
                return
            self.end = None
            self.world.checkpoint = max(self.world.checkpoint, number + 1)

    @property
    def processes(self) -> Sequence[Process]:
        found = [*self.tasks.values(), *([self.end] if self.end else [])]
        return [each for each in found if not each.is_over]

    def advance(self, process: Process | None) -> bool:
        """Let one of its processes do a step; False when the run is over."""
        if process is not None:
            process.advance(self.world.cluster)
        return next(self._life, StopIteration) is not StopIteration


class World:
    """Drivers that share a checkpoint, a cluster, and what goes wrong."""

    def __init__(self, seed: int, *, times_out: bool, has_zombies: bool, is_v2: bool) -> None:
        self.chance = random.Random(seed)
        self.partitions = self.chance.choice([1, 2])
        self.times_out = times_out
        self.has_zombies = has_zombies
        self.cluster = Cluster(is_v2, self.chance)
        self.checkpoint = 0
        self.drivers: list[Driver] = []
        self.zombies: list[Process] = []
        self.run_count = 0
        self.lost: Exception | None = None

    def start(self) -> Driver:
        self.run_count += 1
        driver = Driver(f"run-{self.run_count}", self)
        self.drivers.append(driver)
        return driver

    def crash(self, driver: Driver) -> None:
        self.drivers.remove(driver)
        if self.has_zombies:
            self.zombies += driver.processes

    def play(self, steps: int) -> None:
        """Let chance have its way for so many steps, then let a last run come to its end."""
        for _ in range(steps):
            if self.lost is not None or self.checkpoint == BATCHES:
                break
            if not self.drivers or (len(self.drivers) == 1 and self.chance.random() < 0.01):
                self.start()
            self._do_something()
            self._check_twice()
        for zombie in self.zombies:
            self._run_to_end(zombie)
        self.drivers.clear()
        while self.lost is None and self.checkpoint < BATCHES:
            driver = self.start()
            while self._advance(driver):
                self._check_twice()
        self._check_twice()

    def _do_something(self) -> None:
        dice = self.chance.random()
        driver = self.chance.choice(self.drivers)
        if dice < 0.02:
            self.crash(driver)
        elif dice < 0.04 and driver.tasks:
            index = self.chance.choice(sorted(driver.tasks))
            self._fail_task(driver.tasks[index])
        elif dice < 0.05 and driver.end is not None and not driver.end.is_over:
            driver.end.interrupt()
        elif dice < 0.06 and self.times_out:
            self.cluster.time_out()
        elif dice < 0.12 and self.zombies:
            zombie = self.chance.choice(self.zombies)
            zombie.advance(self.cluster)
            if zombie.is_over:
                self.zombies.remove(zombie)
        elif dice < 0.2:
            self.cluster.trouble_ledgers()
        else:
            self._advance(driver)

    def _fail_task(self, task: Process) -> None:
        if not task.is_over:
            if self.has_zombies and self.chance.random() < 0.5:
                zombie = Process.__new__(Process)
                zombie.__dict__ = dict(task.__dict__)
                self.zombies.append(zombie)
            task.is_over, task.error = True, TaskFailed()

    def _advance(self, driver: Driver) -> bool:
        processes = driver.processes
        is_alive = driver.advance(self.chance.choice(processes) if processes else None)
        if not is_alive:
            if driver in self.drivers:
                self.drivers.remove(driver)
            if isinstance(driver.error, LostTransactionError):
                self.lost = driver.error
            elif driver.error is not None:
                # Expected: it stops, and is started again or has a successor.
                expected = (
                    FencedRunError,
                    OldCheckpointError,
                    UndecidedBatchError,
                    TaskFailed,
                    BrokerGone,
                )
                assert isinstance(driver.error, expected), driver.error
        return is_alive

    def _run_to_end(self, process: Process) -> None:
        while not process.is_over:
            process.advance(self.cluster)

    def _check_twice(self) -> None:
        twice = {rows: count for rows, count in self.cluster.visible.items() if count > 1}
        assert not twice, twice
