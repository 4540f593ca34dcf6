"""Requests in parts: each part is asked of another shard, and one answer tells of all."""

from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.calls import Call

PartDone = Callable[[object], None]
"""Gets what a part is answered with."""


def gather(
    call: Call, parts: Sequence[Callable[[PartDone], None]], then: Callable[[list[object]], None]
) -> None:
    """Begin all parts; `then` gets their outcomes in the parts' order, when all are there."""
    outcomes: dict[int, object] = {}

    def done(place: int, outcome: object) -> None:
        outcomes[place] = outcome
        if len(outcomes) == len(parts):
            finished = [outcomes[each] for each in range(len(parts))]
            call.attempt(partial(then, finished))

    if not parts:
        then([])
    for place, part in enumerate(parts):
        part(partial(done, place))
