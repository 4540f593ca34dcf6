"""A member of a consumer group, as its records tell it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId

JOINING: Final = 0
"""The epoch of a client that is not a member yet."""
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is expected back within its session's time."""

Owned = Mapping[TopicId, Mapping[int, int]]
"""Partitions by topic, each with the member's epoch at which it was assigned (KIP-1251)."""


class MemberState(IntEnum):
    """How far a member came on its way to the target, with Kafka's numbers in records."""

    STABLE = 0
    """It has all that it gets."""
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions first, and to say so."""
    UNRELEASED_PARTITIONS = 2
    """Others have not given up yet what it gets."""
    UNKNOWN = 127
    """A later release wrote something that is not known here."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":  # noqa: ARG003 - all others are alike
        return cls.UNKNOWN


class ClassicProtocol(NamedTuple):
    """One of the assignors that a classic member offers, with its subscription."""

    name: str
    metadata: bytes


class ClassicFace(NamedTuple):
    """What is known of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member; a change makes a new one."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicFace | None = None
    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    """What it has to give up, and may still use."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has all that it gets in the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def moved(
        self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned
    ) -> "ConsumerMember":
        """Return the member a step further."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )


class _ListedWithEpochs(Protocol):
    topic_id: bytes
    partitions: Sequence[int]
    assignment_epochs: Sequence[int] | None


def owned_of(listed: Iterable[_ListedWithEpochs], member_epoch: int) -> Owned:
    """Return what a record lists; releases before 4.3 write no epochs of partitions."""
    owned: dict[TopicId, dict[int, int]] = {}
    for each in listed:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [max(member_epoch, 0)] * len(each.partitions)
        owned[TopicId(each.topic_id)] = dict(zip(each.partitions, epochs, strict=True))
    return owned


def without_epochs(owned: Owned) -> Partitions:
    """Return the partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}
