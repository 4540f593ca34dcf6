"""What share groups want to be done with their share states."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moldau.broker.coordinators.persister import persist_all
from moldau.broker.coordinators.shard import Shard
from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DeleteShares, InitializeShares, SharesDeleted, SharesInitialized
from moldau.kernel.ids import TopicId
from moldau.sharing.commands import DeleteState, InitializeState
from moldau.sharing.share_state import ShareKey

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker

Answers = Sequence[tuple[ShareKey, Done | Refusal]]


def initialize_shares(
    broker: "CoordinatingBroker", shard: Shard, effect: InitializeShares[Any]
) -> None:
    """Make share states, and tell the group which are there."""

    def answered(answers: Answers) -> None:
        made = _by_topic(answers, lambda outcome: not isinstance(outcome, Refusal))
        failed = _by_topic(answers, lambda outcome: isinstance(outcome, Refusal))
        shard.submit(SharesInitialized(effect, made, failed), _noted)

    keys = _keys(effect.group_id, effect.start_offsets)
    persist_all(
        broker,
        [
            (
                key,
                InitializeState(
                    key, effect.state_epoch, effect.start_offsets[key.topic_id][key.partition]
                ),
            )
            for key in keys
        ],
        answered,
    )


def delete_shares(broker: "CoordinatingBroker", shard: Shard, effect: DeleteShares[Any]) -> None:
    """Delete share states, and tell the group of which topics they are gone."""

    def answered(answers: Answers) -> None:
        failed = _by_topic(answers, lambda outcome: isinstance(outcome, Refusal))
        deleted = [topic_id for topic_id in effect.partitions if topic_id not in failed]
        shard.submit(SharesDeleted(effect, deleted), _noted)

    keys = _keys(effect.group_id, effect.partitions)
    persist_all(broker, [(key, DeleteState(key)) for key in keys], answered)


def _keys(group_id: str, partitions: Mapping[TopicId, Iterable[int]]) -> list[ShareKey]:
    return [
        ShareKey(group_id, topic_id, index)
        for topic_id, indexes in partitions.items()
        for index in indexes
    ]


def _by_topic(
    answers: Answers, takes: Callable[[Done | Refusal], bool]
) -> dict[TopicId, frozenset[int]]:
    taken: dict[TopicId, set[int]] = {}
    for key, outcome in answers:
        if takes(outcome):
            taken.setdefault(key.topic_id, set()).add(key.partition)
    return {topic_id: frozenset(indexes) for topic_id, indexes in taken.items()}


def _noted(_outcome: Done | Refusal) -> None:
    """If the group's coordinator is elsewhere now, the client that waited heard that already."""
