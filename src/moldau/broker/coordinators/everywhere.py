"""A request that every coordinator of this broker answers a part of."""

from collections.abc import Callable, Sequence

from moldau.broker.coordinators.coordinator import Coordinator


def ask_everywhere(
    coordinator: Coordinator, command: object, then: Callable[[Sequence[object]], None]
) -> None:
    """Have a command decided by every shard that is led here; `then` gets all answers.

    An answer is a response or a `Refusal`, of those that load as well.
    """
    shards = tuple(coordinator)
    answers: list[object] = []

    def take(answer: object) -> None:
        answers.append(answer)
        if len(answers) == len(shards):
            then(answers)

    if not shards:
        then(answers)
    for shard in shards:
        shard.submit(command, take)
