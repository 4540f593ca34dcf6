"""Requests about share states, asked of their coordinator partition by partition."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.coordination.command import Answer, Command
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import TopicId
from moldau.sharing.share_state import ShareKey

if TYPE_CHECKING:
    from moldau.broker.broker import Broker


class _Partition(Protocol):
    partition: int


AnyPartition_co = TypeVar("AnyPartition_co", bound=_Partition, covariant=True)


class TopicOfStates(Protocol[AnyPartition_co]):
    """A topic as these requests name it."""

    @property
    def topic_id(self) -> bytes:
        """Its id."""

    @property
    def partitions(self) -> Sequence[AnyPartition_co]:
        """What is asked of it."""


StateOutcomes: TypeAlias = Mapping[bytes, Sequence[tuple[int, Answer | Refusal]]]
"""By topic: each partition's number, and what the coordinator says or a `Refusal`."""


def ask_states(
    broker: "Broker",
    call: Call,
    group_id: str,
    topics: Sequence[TopicOfStates[AnyPartition_co]],
    command_of: Callable[[ShareKey, AnyPartition_co], Command[Answer]],
    then: Callable[[StateOutcomes[Answer]], None],
) -> None:
    """Ask for all partitions; `then` gets the answers together.

    `command_of` may refuse a partition.
    """
    keys = [
        (ShareKey(group_id, TopicId(topic.topic_id), each.partition), each)
        for topic in topics
        for each in topic.partitions
        if group_id
    ]
    outcomes: dict[ShareKey, Answer | Refusal] = {}
    commands: dict[ShareKey, Command[Answer]] = {}
    for key, each in keys:
        try:
            commands[key] = command_of(key, each)
        except Refusal as refusal:
            outcomes[key] = refusal

    def answered(answers: Sequence[Answer | Refusal]) -> None:
        outcomes.update(zip(commands, answers, strict=True))
        by_topic: dict[bytes, list[tuple[int, Answer | Refusal]]] = {}
        for key, _ in keys:
            by_topic.setdefault(key.topic_id, []).append((key.partition, outcomes[key]))
        then(by_topic)

    keyed = [(str(key), command) for key, command in commands.items()]
    ask_each(call, broker.coordinators.shares, keyed, answered)
