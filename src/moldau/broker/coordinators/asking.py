"""From a request to a coordinator, and back to an answer."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from moldau.broker.calls import Call
from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.request_parts import gather
from moldau.coordination.machine import Asked
from moldau.coordination.refusal import Refusal
from moldau.protocol.schema import Message

Request = TypeVar("Request", bound=Message)


def asked(call: Call, request: Request) -> Asked[Request]:
    """Return the request as coordinators get it."""
    return Asked(request, call.version, call.client_id or "", f"/{call.peer.host}")


def ask(
    coordinator: Coordinator,
    key: str,
    call: Call,
    request: Message,
    refused: Callable[[Refusal], Message],
) -> None:
    """Have a request decided by the coordinator of a key, and answer the call with what it says."""

    def answer(outcome: object) -> None:
        response = refused(outcome) if isinstance(outcome, Refusal) else outcome
        assert isinstance(response, Message), f"no answer to a request: {response}"
        call.answer(response)

    coordinator.submit(
        key, asked(call, request), lambda outcome: call.attempt(partial(answer, outcome))
    )


def ask_each(
    coordinator: Coordinator,
    call: Call,
    commands: Iterable[tuple[str, object]],
    then: Callable[[Sequence[object]], None],
) -> None:
    """Have each command decided for its key; `then` gets all outcomes in the order of commands."""
    gather(call, [partial(coordinator.submit, key, command) for key, command in commands], then)


def ask_everywhere(
    coordinator: Coordinator,
    call: Call,
    command: object,
    then: Callable[[Sequence[object]], None],
) -> None:
    """Have a command decided by every shard that is led here; `then` gets all outcomes.

    Those that load, or cannot, have a `Refusal`.
    """
    gather(call, [partial(shard.submit, command) for shard in coordinator], then)
