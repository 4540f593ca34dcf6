"""The states of a transaction, and which may follow which.

    Empty ----------> Ongoing ----------> PrepareCommit ---> CompleteCommit
      |                  |  (writes)                               |
      |                  +--------------> PrepareAbort ----> CompleteAbort
      +--- (KIP-890) ------------------------^    and from Complete on as from Empty

Kafka has two more states that no record is ever in: Dead, for an id that is being forgotten, and
PrepareEpochFence, for a transaction that is going to be aborted and not by its producer.
"""

import enum
from collections.abc import Mapping
from typing import Final


class TransactionState(enum.IntEnum):
    """How far a transaction is; the number is what is recorded."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        """Return the name in Kafka's words, such as PrepareCommit."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether it is decided how the transaction ends, and not every partition has heard."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_commit(self) -> bool:
        """Whether the transaction is, or is going to be, committed."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


_NOTHING_OPEN: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)

PREVIOUS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _NOTHING_OPEN,
    TransactionState.ONGOING: _NOTHING_OPEN | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    # KIP-890: aborting what has not begun is allowed, and bumps the epoch.
    TransactionState.PREPARE_ABORT: _NOTHING_OPEN | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""From which states a recorded state can be reached."""

STATES_BY_NAME: Final = {state.shown: state for state in TransactionState}
