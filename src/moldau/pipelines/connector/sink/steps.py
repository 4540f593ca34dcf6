"""What the sink's protocol asks of Kafka, one step at a time, and how steps make a program.

A program is a generator that yields steps and is sent their answers: `connector/sink/kafka.py`
performs them, and so does a model that lets many programs run at once and crashes them anywhere.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from moldau.pipelines.connector.sink.errors import LedgerTakenError
from moldau.pipelines.connector.sink.ledger import Ledger, OpenTransaction
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome

Answer = TypeVar("Answer")
Result = TypeVar("Result")


class Step(Generic[Answer]):
    """Something to be done, with an answer."""


Program: TypeAlias = Generator[Step[Any], Any, Result]


@dataclass(frozen=True, slots=True)
class ReadLedger(Step[Ledger]):
    """What the ledger says: the newest may be missing, but nothing before what is seen."""

    key: str


@dataclass(frozen=True, slots=True)
class OpenLedger(Step[Ledger]):
    """What the ledger says; until another process opens it, only this one can append to it."""

    key: str


@dataclass(frozen=True, slots=True)
class Append(Step[None]):
    """Let the ledger, which is open, say this; None: nothing. `LedgerTakenError` if it is not."""

    key: str
    ledger: Ledger | None


@dataclass(frozen=True, slots=True)
class AreOpen(Step[bool]):
    """Whether all of these transactions wait for their end."""

    transactions: Sequence[OpenTransaction]


@dataclass(frozen=True, slots=True)
class EndAll(Step[Sequence[TransactionOutcome]]):
    """End transactions, and say how each has ended; it may be asked for again."""

    transactions: Sequence[OpenTransaction]
    is_commit: bool


@dataclass(frozen=True, slots=True)
class FindOpen(Step[Sequence[str]]):
    """Transactional ids with an open transaction that may be the key's."""

    key: str


@dataclass(frozen=True, slots=True)
class Fence(Step[None]):
    """Abort what these ids have open, and stop who has them."""

    transactional_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class FindAbandoned(Step[Sequence[str]]):
    """Keys of batch writes that were decided a while ago, and are not done."""


@dataclass(frozen=True, slots=True)
class ReportStep(Step[None]):
    """Tell people what they should know, and go on."""

    words: str


@dataclass(frozen=True, slots=True)
class Pause(Step[None]):
    """Wait a little, longer each time: another process wants the same."""

    attempt: int


def ask(step: Step[Answer]) -> Program[Answer]:
    """Have a step performed, as a part of a program."""
    answer: Answer = yield step
    return answer


def run(program: Program[Result], perform: Callable[[Step[Any]], Any]) -> Result:
    """Perform a program's steps to its end; it is told when it has lost the ledger."""
    try:
        step = next(program)
        while True:
            try:
                answer = perform(step)
            except LedgerTakenError as error:
                step = program.throw(error)
            else:
                step = program.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
