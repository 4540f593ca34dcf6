"""Requests that the controller decides: submitted, and answered in time or not at all."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.coordination.command import Command
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message

if TYPE_CHECKING:
    from moldau.broker.ports import Timer

Response = TypeVar("Response", bound=Message)


def forward(
    broker: Broker,
    call: Call,
    command: Command[Response],
    failed: Callable[[ErrorCode], Response],
    timeout_ms: int | None = None,
) -> Response | None:
    """Have a command decided, and answer the call with what becomes of it.

    Who gives no time at all hears that it is up, and nothing is decided: so does Kafka.
    """
    if timeout_ms is not None and timeout_ms <= 0:
        return failed(ErrorCode.REQUEST_TIMED_OUT)

    def decided(outcome: Response | ErrorCode) -> None:
        call.answer(failed(outcome) if isinstance(outcome, ErrorCode) else outcome)

    decide(broker, call, command, decided, timeout_ms)
    return None


def decide(
    broker: Broker,
    call: Call,
    command: Command[Response],
    then: Callable[[Response | ErrorCode], None],
    timeout_ms: int | None = None,
) -> None:
    """Have a command decided for a call; `then` gets the answer, or why there is none.

    That is REQUEST_TIMED_OUT when the time is up; the decision stands. NOT_CONTROLLER, when no
    node decides, makes clients look for a controller and try again; after UNKNOWN_SERVER_ERROR they
    give up.
    """
    is_done = False
    timer: Timer | None = None

    def expired() -> None:
        nonlocal is_done
        is_done = True
        call.attempt(partial(then, ErrorCode.REQUEST_TIMED_OUT))

    def decided(outcome: Response | ErrorCode) -> None:
        if is_done:
            return
        if timer is not None:
            timer.cancel()
        call.attempt(partial(then, outcome))

    if timeout_ms is not None:
        timer = broker.environment.at(
            broker.environment.now().monotonic + timeout_ms / 1000, expired
        )
    broker.controller.submit(command, decided)
