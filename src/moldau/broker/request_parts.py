"""Requests in parts: each is asked of another place, and one answer tells of all."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from moldau.broker.calls import Call

Outcome = TypeVar("Outcome")

Part: TypeAlias = Callable[[Callable[[Outcome], None]], None]
"""Begins a part of a request, and calls back with what becomes of it."""


def gather(
    call: Call, parts: Sequence[Part[Outcome]], then: Callable[[Sequence[Outcome]], None]
) -> None:
    """Begin all parts; `then` gets their outcomes in the parts' order, when all are there."""
    outcomes: dict[int, Outcome] = {}

    def done(place: int, outcome: Outcome) -> None:
        outcomes[place] = outcome
        if len(outcomes) == len(parts):
            finished = [outcomes[each] for each in range(len(parts))]
            call.attempt(partial(then, finished))

    if not parts:
        then([])
    for place, part in enumerate(parts):
        part(partial(done, place))
