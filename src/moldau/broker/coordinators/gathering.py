"""A request that is answered in parts, by several coordinators."""

from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.coordinators.coordinator import Coordinator


def gather(
    coordinator: Coordinator,
    commands: Sequence[tuple[str, object]],
    then: Callable[[Sequence[object]], None],
) -> None:
    """Have each command decided for its key; `then` gets all answers in the order of commands.

    An answer is a response or a `Refusal`.
    """
    answers: list[object] = [None] * len(commands)
    missing = len(commands)

    def take(index: int, answer: object) -> None:
        nonlocal missing
        answers[index] = answer
        missing -= 1
        if not missing:
            then(answers)

    if not commands:
        then(answers)
    for index, (key, command) in enumerate(commands):
        coordinator.submit(key, command, partial(take, index))
