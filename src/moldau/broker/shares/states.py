"""Requests about share states, asked of their coordinator partition by partition."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from moldau.broker.calls import Call
from moldau.broker.gathering import Then, gather
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import TopicId
from moldau.sharing.stored_state import ShareKey

if TYPE_CHECKING:
    from moldau.broker.broker import Broker


class _Partition(Protocol):
    partition: int


AnyPartition_co = TypeVar("AnyPartition_co", bound=_Partition, covariant=True)


class Topic(Protocol[AnyPartition_co]):
    """A topic as these requests name it."""

    @property
    def topic_id(self) -> bytes:
        """Its id."""

    @property
    def partitions(self) -> Sequence[AnyPartition_co]:
        """What is asked of it."""


Outcomes = Mapping[bytes, Sequence[tuple[int, object]]]
"""By topic: each partition's number, and what the coordinator says or a `Refusal`."""


def ask_states(
    broker: "Broker",
    call: Call,
    group_id: str,
    topics: Sequence[Topic[AnyPartition_co]],
    command_of: Callable[[ShareKey, AnyPartition_co], object],
    then: Callable[[Outcomes], None],
) -> None:
    """Ask for all partitions; `then` gets the answers together.

    `command_of` may refuse a partition.
    """
    keys = []
    parts: list[Callable[[Then], None]] = []
    for topic in topics if group_id else ():
        for each in topic.partitions:
            key = ShareKey(group_id, TopicId(topic.topic_id), each.partition)
            keys.append(key)
            try:
                command = command_of(key, each)
            except Refusal as refusal:
                parts.append(partial(_tell, refusal))
            else:
                parts.append(partial(broker.coordinators.shares.submit, str(key), command))

    def answered(outcomes: list[object]) -> None:
        by_topic: dict[bytes, list[tuple[int, object]]] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            by_topic.setdefault(key.topic_id, []).append((key.partition, outcome))
        then(by_topic)

    gather(call, parts, answered)


def _tell(refusal: Refusal, then: Then) -> None:
    then(refusal)
