"""A coordinator's machine that keeps numbers by name, and a shard for it over a broker's world."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.broker.coordinators.shard import Shard
from moldau.coordination.command import Command, Ticket
from moldau.coordination.decision import CancelTimer, Decision, Effect, Reply, SetTimer
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord, record_types
from moldau.kernel.clock import Instant
from moldau.log.config import Durability
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored import offsets
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue
from tests.unit.broker.world import TOPIC, World

TYPES = record_types(offsets)


@dataclass
class Put(Command[str]):
    """Set numbers, together or not."""

    numbers: dict[str, int]
    producer: ProducerIdentity | None = None
    is_atomic: bool = True
    is_pure: bool = False
    note: str = ""


@dataclass
class Get(Command[int | str]):
    """Ask for a number."""

    name: str


@dataclass
class Wait(Command[str]):
    """Be answered when the next number is set."""


@dataclass
class Remind(Command[str]):
    """Have a number set at a time, or no more if that is None."""

    name: str
    at: float | None


@dataclass(frozen=True)
class Shout(Effect):
    """To be done outside."""

    what: str


class Register:
    """A `coordination.machine.Machine`."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.waiting: list[Ticket] = []

    def decide(self, command: object, ticket: Ticket, _now: Instant) -> Decision:
        match command:
            case Put():
                if any(number < 0 for number in command.numbers.values()):
                    raise Refusal(ErrorCode.INVALID_REQUEST, "Numbers are not negative.")
                waiting: list[Ticket] = []
                if not command.is_pure:
                    waiting, self.waiting = self.waiting, []
                return Decision(
                    [
                        record(name, number, command.note)
                        for name, number in command.numbers.items()
                    ],
                    "done",
                    [Shout(f"{name} is set") for name in command.numbers]
                    + [Reply(each, "heard") for each in waiting],
                    producer=command.producer,
                    is_atomic=command.is_atomic,
                    is_pure=command.is_pure,
                )
            case Get():
                return Decision(response=self.numbers.get(command.name, "none"))
            case Wait():
                self.waiting.append(ticket)
                return Decision()
            case Remind(at=None):
                return Decision(response="done", effects=[CancelTimer(command.name)])
            case Remind(at=float(at)):
                return Decision(response="done", effects=[SetTimer(command.name, at)])
        raise ValueError(command)

    def expire(self, key: Hashable, _now: Instant) -> Decision:
        if key == "broken":
            raise ValueError(key)
        return Decision([record(str(key), 1)])

    def loaded(self, _now: Instant) -> Decision:
        return Decision(effects=[Shout("loaded")])

    def replay(self, _offset: int, producer_id: int, key: Any, value: Any) -> None:
        numbers = self.numbers
        if producer_id != NO_PRODUCER:
            numbers = self.pending.setdefault(producer_id, {})
        numbers[key.group] = value.offset

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        ended = self.pending.pop(producer_id, {})
        if is_commit:
            self.numbers |= ended


def record(name: str, number: int, note: str = "") -> StoredRecord:
    key = OffsetCommitKey(group=name)
    return StoredRecord(key, OffsetCommitValue(offset=number, metadata=note), 3)


class RegisterWorld:
    """A shard of a register over the first partition of a world."""

    def __init__(self, durability: Durability = Durability.PAGE_CACHE, **options: Any) -> None:
        self.world = World(durability=durability)
        self.world.create(**options)
        self.performed: list[str] = []
        self.answers: list[object] = []
        self.shard = self.start()

    def start(self) -> Shard:
        """Have another shard, as after a restart."""
        replica = self.world.replicas.get((TOPIC, 0))
        assert replica is not None
        return Shard(
            replica,
            Register,
            TYPES,
            logs=self.world.logs,
            environment=self.world.environment,
            watch=self.world.broker.shard_watch,
            perform=lambda _shard, effect: self.performed.append(effect.what),
        )

    def run(self, seconds: float = 0.0) -> None:
        self.world.environment.run(seconds)

    def submit(self, command: object, then: Callable[[object], None] | None = None) -> None:
        self.shard.submit(command, then or self.take)

    def take(self, answer: object) -> None:
        self.answers.append(answer.code if isinstance(answer, Refusal) else answer)

    def taken(self) -> Sequence[object]:
        """Return the answers that came since."""
        answers, self.answers = self.answers, []
        return answers

    def ask(self, command: object) -> object:
        """Have a command decided and stored; return its answer."""
        self.submit(command)
        self.world.flush()
        (answer,) = self.taken()
        return answer
