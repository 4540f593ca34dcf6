"""From a request to a coordinator, and back to an answer."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from moldau.broker.calls import Call
from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.shard import Shard
from moldau.broker.request_parts import Part, gather
from moldau.coordination.command import Answer, Command
from moldau.coordination.refusal import Refusal
from moldau.protocol.schema import Message

Kind = TypeVar("Kind")
Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


def request_command(
    kind: Callable[[Request, int, str, str], Kind], call: Call, request: Request
) -> Kind:
    """Return the request as the command that coordinators get."""
    return kind(request, call.version, call.client_id or "", f"/{call.peer.host}")


def submit_for(
    call: Call,
    coordinator: Coordinator,
    key: str,
    command: Command[Answer],
    then: Callable[[Answer | Refusal], None],
) -> None:
    """Have a command decided for a call; `then` answers the call, as its handler would."""

    def decided(outcome: Answer | Refusal) -> None:
        call.attempt(partial(then, outcome))

    coordinator.submit(key, command, decided)


def ask(
    call: Call,
    coordinator: Coordinator,
    key: str,
    command: Command[Response],
    refused: Callable[[Refusal], Response],
) -> None:
    """Answer a call with what the coordinator of a key answers to a command."""

    def answer(outcome: Response | Refusal) -> None:
        call.answer(refused(outcome) if isinstance(outcome, Refusal) else outcome)

    submit_for(call, coordinator, key, command, answer)


def ask_each(
    call: Call,
    coordinator: Coordinator,
    commands: Iterable[tuple[str, Command[Answer]]],
    then: Callable[[Sequence[Answer | Refusal]], None],
) -> None:
    """Have each command decided for its key; `then` gets all outcomes in the order of commands."""

    def part(key: str, command: Command[Answer]) -> Part[Answer | Refusal]:
        return lambda decided: coordinator.submit(key, command, decided)

    gather(call, [part(key, command) for key, command in commands], then)


def ask_shards(
    call: Call,
    shards: Iterable[Shard],
    command: Command[Answer],
    then: Callable[[Sequence[Answer | Refusal]], None],
) -> None:
    """Have a command decided by each shard; `then` gets all outcomes.

    Those that load, or cannot, have a `Refusal`.
    """

    def part(shard: Shard) -> Part[Answer | Refusal]:
        return lambda decided: shard.submit(command, decided)

    gather(call, [part(shard) for shard in shards], then)
