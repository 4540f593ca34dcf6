"""The way to the coordinator of share states, for the broker itself: with patience."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic

from moldau.controller.commands import CreateMissingTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.coordination.command import Answer, Command, OwnAnswer
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import PASSING
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreateTopicsResponse
from moldau.sharing.share_state import ShareKey, coordinator_key

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker

PATIENCE_SECONDS: Final = 10.0
"""How long a coordinator is waited for that loads, or has no topic yet."""

PAUSE_SECONDS: Final = 0.05


def persist(
    broker: "CoordinatingBroker",
    key: ShareKey,
    command: Command[Answer],
    then: Callable[[Answer | Refusal], None],
) -> None:
    """Ask the coordinator of a share state; `then` gets its answer or a `Refusal`.

    The coordinator's topic is made if there is none.
    """
    _Question(broker, key, command, then).ask()


def persist_all(
    broker: "CoordinatingBroker",
    commands: Iterable[tuple[ShareKey, Command[Answer]]],
    then: Callable[[Sequence[tuple[ShareKey, Answer | Refusal]]], None],
) -> None:
    """Ask for many; `then` gets all answers together, in the order that they came."""
    asked = list(commands)
    answers: list[tuple[ShareKey, Answer | Refusal]] = []

    def answered(key: ShareKey, outcome: Answer | Refusal) -> None:
        answers.append((key, outcome))
        if len(answers) == len(asked):
            then(answers)

    if not asked:
        then(answers)
    for key, command in asked:
        persist(broker, key, command, partial(answered, key))


class _Question(Generic[OwnAnswer]):
    """A question on its way."""

    __slots__ = ("_broker", "_command", "_key", "_then", "_until")

    def __init__(
        self,
        broker: "CoordinatingBroker",
        key: ShareKey,
        command: Command[OwnAnswer],
        then: Callable[[OwnAnswer | Refusal], None],
    ) -> None:
        self._broker = broker
        self._key = key
        self._command = command
        self._then = then
        self._until: float | None = None
        """When it is given up; nearly always the first answer is the last."""

    def ask(self) -> None:
        """Ask, or have the topic made first."""
        shares = self._broker.coordinators.shares
        if shares.is_missing:
            entropy = self._broker.environment.entropy(UUID_BYTES)
            self._broker.controller.submit(
                CreateMissingTopics([shares.topic], entropy), self._created
            )
        else:
            shares.submit(coordinator_key(self._key), self._command, self._answered)

    def _created(self, _outcome: CreateTopicsResponse | ErrorCode) -> None:
        self._broker.coordinators.shares.submit(
            coordinator_key(self._key), self._command, self._answered
        )

    def _answered(self, outcome: OwnAnswer | Refusal) -> None:
        environment = self._broker.environment
        if isinstance(outcome, Refusal) and outcome.code in PASSING:
            now = environment.now().monotonic
            if self._until is None:
                self._until = now + PATIENCE_SECONDS
            again = now + PAUSE_SECONDS
            if again < self._until:
                environment.at(again, self.ask)
                return
        self._then(outcome)
