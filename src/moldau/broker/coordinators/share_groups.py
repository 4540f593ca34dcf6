"""What share groups want to be done with their share states."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from moldau.broker.coordinators.persister import persist_all
from moldau.broker.coordinators.shard import Shard
from moldau.coordination.refusal import Refusal
from moldau.groups.share.commands import (
    DeleteShares,
    InitializeShares,
    SharesDeleted,
    SharesInitialized,
)
from moldau.kernel.ids import TopicId
from moldau.sharing.commands import DeleteState, InitializeState
from moldau.sharing.stored_state import ShareKey

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker

Answers = list[tuple[ShareKey, object]]


def initialize_shares(broker: "CoordinatingBroker", shard: Shard, effect: InitializeShares) -> None:
    """Make share states, and tell the group which are there."""

    def answered(answers: Answers) -> None:
        made = _by_topic(answers, lambda outcome: not isinstance(outcome, Refusal))
        failed = _by_topic(answers, lambda outcome: isinstance(outcome, Refusal))
        command = SharesInitialized(effect.group_id, made, failed, effect.ticket, effect.response)
        shard.submit(command, _noted)

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


def delete_shares(broker: "CoordinatingBroker", shard: Shard, effect: DeleteShares) -> None:
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


def _by_topic(answers: Answers, takes: Callable[[object], bool]) -> dict[TopicId, frozenset[int]]:
    taken: dict[TopicId, set[int]] = {}
    for key, outcome in answers:
        if takes(outcome):
            taken.setdefault(key.topic_id, set()).add(key.partition)
    return {topic_id: frozenset(indexes) for topic_id, indexes in taken.items()}


def _noted(outcome: object) -> None:
    """If the group's coordinator is elsewhere now, who waited there heard that already."""
