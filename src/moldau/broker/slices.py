"""Answers that take long, made over several turns of the loop so that others get theirs."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.schema import Message

Response = TypeVar("Response", bound=Message)


def answer_in_slices(
    broker: Broker, call: Call, slices: Iterator[None], finish: Callable[[], Response]
) -> Response | None:
    """Return the answer if there is but one slice; else None, and give it when all are done."""

    def go_on() -> Response | None:
        for _ in slices:
            broker.environment.at(broker.environment.now().monotonic, resume)
            return None
        return finish()

    def resume() -> None:
        call.attempt(answer)

    def answer() -> None:
        response = go_on()
        if response is not None:
            call.answer(response)

    return go_on()
