"""What the share coordinator is asked, for one partition of one group at a time."""

from collections.abc import Set
from dataclasses import dataclass

from moldau.coordination.command import Command, Done
from moldau.coordination.decision import Effect
from moldau.kernel.ids import Offset
from moldau.sharing.share_state import UNSET, ShareKey, ShareState
from moldau.sharing.states import StateBatch


@dataclass(frozen=True, slots=True)
class Summary:
    """What describes a state; by default one that was never written."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNSET
    delivery_complete_count: int = UNSET


@dataclass(frozen=True, slots=True)
class InitializeState(Command[Done]):
    """Begin a state anew; an epoch that is older than the known one is refused."""

    key: ShareKey
    state_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class ReadState(Command[ShareState]):
    """Ask for a state; a leader that asks with its epoch fences those before it."""

    key: ShareKey
    leader_epoch: int = UNSET


@dataclass(frozen=True, slots=True)
class ReadSummary(Command[Summary]):
    """Ask for what describes a state."""

    key: ShareKey


@dataclass(frozen=True, slots=True)
class WriteState(Command[Done]):
    """Tell what has changed."""

    key: ShareKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True)
class DeleteState(Command[Done]):
    """Forget a state, if there is one."""

    key: ShareKey


@dataclass(frozen=True, slots=True)
class ForgetTopicStates(Command[Done]):
    """Forget the states of topics that are gone."""

    topic_ids: Set[bytes]


@dataclass(frozen=True, slots=True)
class DeleteBefore(Effect):
    """Nothing before an offset of the coordinator's partition is needed any more."""

    offset: Offset
