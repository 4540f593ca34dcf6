"""What the share coordinator is asked, for one partition of one group at a time."""

from collections.abc import Set
from dataclasses import dataclass

from moldau.coordination.machine import Effect
from moldau.kernel.ids import Offset
from moldau.sharing.states import StateBatch
from moldau.sharing.stored_state import UNSET, ShareKey


@dataclass(frozen=True, slots=True)
class InitializeState:
    """Begin a state anew; an epoch that is older than the known one is refused."""

    key: ShareKey
    state_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class ReadState:
    """Ask for a `ShareState`; a leader that asks with its epoch fences those before it."""

    key: ShareKey
    leader_epoch: int = UNSET


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Ask for a `ShareState`, None if there is none."""

    key: ShareKey


@dataclass(frozen=True, slots=True)
class WriteState:
    """Tell what has changed."""

    key: ShareKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True)
class DeleteState:
    """Forget a state, if there is one."""

    key: ShareKey


@dataclass(frozen=True, slots=True)
class ForgetTopics:
    """Forget the states of topics that are gone."""

    topic_ids: Set[bytes]


@dataclass(frozen=True, slots=True)
class DeleteBefore(Effect):
    """Nothing before an offset of the coordinator's partition is needed any more."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class Done:
    """The answer where there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer to `ReadSummary`."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNSET
    delivery_complete_count: int = UNSET
