"""What an error of a coordinator, or of its partition, is called where it is told.

A coordinator refuses with one code. Its readers do not all know that code: a client of an older
version, the leader of a partition, or a client of that leader. Each has a row in the one table
here; a code without an entry is told as it is.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from moldau.protocol.errors import ErrorCode

ALL_VERSIONS: Final = 1 << 15

PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Of a coordinator that loads, has no topic yet or is elsewhere: asking again may help."""


class ErrorReader(Enum):
    """A kind of caller, or the clients of an API."""

    COORDINATOR_CALLER = auto()
    """Is told errors of the coordinator's own partition."""
    OTHER_CALLER = auto()
    """Waits for the same shard, and has no part in the decision that was lost."""
    MARKER_WRITER = auto()
    """Is told errors of a group's coordinator as the leader of its partition would tell them."""
    TRANSACTIONAL_WRITER = auto()
    """Asks whether a producer may write, whatever its version."""
    SHARE_MEMBER = auto()
    """Is told by a partition's leader what the leader hears from the share coordinator."""
    ADD_OFFSETS_TO_TXN = auto()
    ADD_PARTITIONS_TO_TXN = auto()
    END_TXN = auto()
    HEARTBEAT = auto()
    INIT_PRODUCER_ID = auto()
    OFFSET_COMMIT = auto()
    OFFSET_FETCH = auto()
    PRODUCE = auto()
    TXN_OFFSET_COMMIT = auto()


class _Told(NamedTuple):
    code: ErrorCode
    before: int = ALL_VERSIONS
    """The first version whose clients know the code itself."""


_TABLE: Final[Mapping[ErrorReader, Mapping[ErrorCode, _Told]]] = {
    ErrorReader.COORDINATOR_CALLER: {
        ErrorCode.KAFKA_STORAGE_ERROR: _Told(ErrorCode.NOT_COORDINATOR),
        ErrorCode.MESSAGE_TOO_LARGE: _Told(ErrorCode.UNKNOWN_SERVER_ERROR),
        ErrorCode.NOT_ENOUGH_REPLICAS: _Told(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ErrorCode.NOT_LEADER_OR_FOLLOWER: _Told(ErrorCode.NOT_COORDINATOR),
        ErrorCode.RECORD_LIST_TOO_LARGE: _Told(ErrorCode.UNKNOWN_SERVER_ERROR),
        ErrorCode.REQUEST_TIMED_OUT: _Told(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _Told(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    },
    ErrorReader.OTHER_CALLER: {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: _Told(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    },
    ErrorReader.MARKER_WRITER: dict.fromkeys(PASSING, _Told(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
    ErrorReader.TRANSACTIONAL_WRITER: {
        ErrorCode.PRODUCER_FENCED: _Told(ErrorCode.INVALID_PRODUCER_EPOCH),
    },
    ErrorReader.SHARE_MEMBER: {
        **dict.fromkeys(PASSING, _Told(ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        ErrorCode.FENCED_LEADER_EPOCH: _Told(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ErrorCode.FENCED_STATE_EPOCH: _Told(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ErrorCode.GROUP_ID_NOT_FOUND: _Told(ErrorCode.GROUP_ID_NOT_FOUND),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _Told(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    },
    ErrorReader.ADD_OFFSETS_TO_TXN: {
        ErrorCode.PRODUCER_FENCED: _Told(ErrorCode.INVALID_PRODUCER_EPOCH, before=2),
    },
    ErrorReader.ADD_PARTITIONS_TO_TXN: {
        ErrorCode.PRODUCER_FENCED: _Told(ErrorCode.INVALID_PRODUCER_EPOCH, before=2),
    },
    ErrorReader.END_TXN: {
        ErrorCode.PRODUCER_FENCED: _Told(ErrorCode.INVALID_PRODUCER_EPOCH, before=2),
    },
    ErrorReader.HEARTBEAT: {
        # A group that loads is there, and so is its member: it gets a session when it is loaded.
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _Told(ErrorCode.NONE),
    },
    ErrorReader.INIT_PRODUCER_ID: {
        ErrorCode.PRODUCER_FENCED: _Told(ErrorCode.INVALID_PRODUCER_EPOCH, before=4),
    },
    ErrorReader.OFFSET_COMMIT: {
        ErrorCode.GROUP_ID_NOT_FOUND: _Told(ErrorCode.ILLEGAL_GENERATION, before=9),
    },
    ErrorReader.OFFSET_FETCH: {
        # Consumers before Kafka 3.9 give up on the first; on the second they look for another.
        ErrorCode.COORDINATOR_NOT_AVAILABLE: _Told(ErrorCode.NOT_COORDINATOR),
    },
    ErrorReader.PRODUCE: {
        # For this error clients send a batch again, and do not look for another leader before.
        **dict.fromkeys(PASSING, _Told(ErrorCode.NOT_ENOUGH_REPLICAS)),
        ErrorCode.CONCURRENT_TRANSACTIONS: _Told(ErrorCode.NOT_ENOUGH_REPLICAS, before=12),
        ErrorCode.TRANSACTION_ABORTABLE: _Told(ErrorCode.INVALID_TXN_STATE, before=11),
    },
    ErrorReader.TXN_OFFSET_COMMIT: {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _Told(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, before=2
        ),
        # The earlier producers have heard of generations, not of KIP-848's epochs.
        ErrorCode.GROUP_ID_NOT_FOUND: _Told(ErrorCode.ILLEGAL_GENERATION, before=6),
        ErrorCode.STALE_MEMBER_EPOCH: _Told(ErrorCode.ILLEGAL_GENERATION, before=6),
        ErrorCode.TRANSACTION_ABORTABLE: _Told(ErrorCode.INVALID_TXN_STATE, before=4),
    },
}

_ALL_ELSE: Final[Mapping[ErrorReader, ErrorCode]] = {
    ErrorReader.OTHER_CALLER: ErrorCode.NOT_COORDINATOR,
    ErrorReader.SHARE_MEMBER: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What the readers of few codes are told of all others."""


def told_code(reader: ErrorReader, code: ErrorCode, version: int = 0) -> ErrorCode:
    """Return the code that a reader knows; a client's request has a version."""
    told = _TABLE[reader].get(code)
    if told is None:
        return _ALL_ELSE.get(reader, code)
    return told.code if version < told.before else code
