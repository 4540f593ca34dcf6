"""Acknowledgements of one request: checked, done for each partition, and answered together."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from moldau.broker.shares.sessions import SharedPartition
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.sharing.share_state import share_key
from moldau.sharing.states import Acknowledgement, AcknowledgementKind

if TYPE_CHECKING:
    from moldau.broker.broker import Broker
    from moldau.broker.shares.partition import LedShare

_KINDS: Final = {kind.value: kind for kind in AcknowledgementKind}

AcknowledgementOutcomes = Mapping[SharedPartition, Refusal | None]


class AcknowledgementBatch(Protocol):
    """What both requests that acknowledge have in common."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


def acknowledge(
    broker: "Broker",
    group_id: str,
    member_id: str,
    said: Mapping[SharedPartition, Sequence[AcknowledgementBatch]],
    *,
    now: float,
    may_renew: bool,
    then: Callable[[AcknowledgementOutcomes], None],
) -> None:
    """Have acknowledgements stored; `then` gets the outcome of each partition when all are."""
    outcomes: dict[SharedPartition, Refusal | None] = {}

    def answered(partition: SharedPartition, refusal: Refusal | None) -> None:
        outcomes[partition] = refusal
        if len(outcomes) == len(said):
            then(outcomes)

    if not said:
        then(outcomes)
    for partition, batches in said.items():
        done = partial(answered, partition)
        try:
            checked = _checked(batches, may_renew=may_renew)
            share = _find(broker, group_id, partition)
        except Refusal as refusal:
            done(refusal)
        else:
            share.acknowledge(member_id, checked, now, done)


def _find(broker: "Broker", group_id: str, partition: SharedPartition) -> "LedShare":
    topic_id, index = partition
    if broker.image.topics.find_by_id(topic_id) is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    share = broker.shares.find(share_key(group_id, topic_id, index))
    if share is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Nothing of this partition is acquired."
        )
    return share


def _checked(batches: Sequence[AcknowledgementBatch], *, may_renew: bool) -> list[Acknowledgement]:
    end = -2
    checked = []
    for batch in batches:
        first, last = batch.first_offset, batch.last_offset
        types = batch.acknowledge_types
        if first > last:
            raise _invalid("A batch ends before it begins.")
        if first < end:
            raise _invalid("Batches overlap, or are not in order.")
        if first == end:
            # As in Kafka, where one record is met twice: it is not acquired any more.
            raise Refusal(ErrorCode.INVALID_RECORD_STATE, "A record is acknowledged twice.")
        if len(types) not in (1, last - first + 1):
            raise _invalid("A batch has one type for all its offsets, or one for each.")
        highest = AcknowledgementKind.RENEW if may_renew else AcknowledgementKind.REJECT
        kinds = []
        for each in types:
            kind = _KINDS.get(each)
            if kind is None or kind > highest:
                raise _invalid("There is no such type of acknowledgement.")
            kinds.append(kind)
        end = last
        checked.append(Acknowledgement(Offset(first), Offset(last), tuple(kinds)))
    return checked


def _invalid(words: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, words)
