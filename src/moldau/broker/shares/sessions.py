"""Share sessions: which partitions a member fetches, remembered as long as its connection lasts."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from moldau.broker.calls import Peer
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode

FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
EPOCH_MAX: Final = (1 << 31) - 1

PARTITIONS_MAX: Final = 200_000
"""In all sessions together."""


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


SharedPartition = tuple[bytes, int]
"""A topic's id, and the partition's number."""


class ShareSession:
    """One member's session."""

    __slots__ = ("epoch", "key", "partitions", "peer")

    def __init__(self, key: SessionKey, peer: Peer, partitions: Iterable[SharedPartition]) -> None:
        self.key = key
        self.peer = peer
        self.epoch = FIRST_EPOCH + 1
        """The one that the next request has to have."""
        self.partitions = dict.fromkeys(partitions)
        """In order; the first in each turn is another one."""

    def in_turn(self, epoch: int) -> list[SharedPartition]:
        """Return the partitions, beginning with another one for each epoch of a request."""
        partitions = list(self.partitions)
        if len(partitions) < 2:
            return partitions
        first = epoch % len(partitions)
        return partitions[first:] + partitions[:first]

    def advance(self) -> None:
        """The request of this epoch is here."""
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1


class ShareSessions:
    """All of a broker; `Refusal` says what is wrong with an epoch."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        """Return a member's session, None if it has none."""
        return self._sessions.get(key)

    def has_group(self, group_id: str) -> bool:
        """Whether any member of a group has a session."""
        return any(key.group_id == group_id for key in self._sessions)

    def begin(
        self, key: SessionKey, peer: Peer, partitions: Iterable[SharedPartition], sessions_max: int
    ) -> ShareSession:
        """Begin a session anew."""
        self.remove(key)
        session = ShareSession(key, peer, partitions)
        if len(self._sessions) >= sessions_max:
            raise _full()
        self._count(len(session.partitions))
        self._sessions[key] = session
        return session

    def get(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session for a request with an epoch, which the next has to follow."""
        session = self._sessions.get(key)
        if session is None:
            raise Refusal(ErrorCode.SHARE_SESSION_NOT_FOUND, "There is no such share session.")
        if epoch == LAST_EPOCH:
            return session
        if epoch != session.epoch:
            raise Refusal(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"The share session is at epoch {session.epoch}, not {epoch}.",
            )
        return session

    def update(
        self,
        session: ShareSession,
        added: Iterable[SharedPartition],
        forgotten: Iterable[SharedPartition],
    ) -> None:
        """Take over what a client fetches from now on, or no more."""
        new = dict.fromkeys(each for each in added if each not in session.partitions)
        self._count(len(new))
        session.partitions |= new
        for partition in forgotten:
            if partition in session.partitions:
                del session.partitions[partition]
                self._partition_count -= 1

    def remove(self, key: SessionKey) -> ShareSession | None:
        """End a session, if there is one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partition_count -= len(session.partitions)
        return session

    def remove_all_of(self, peer: Peer) -> list[ShareSession]:
        """End the sessions of a connection that is gone."""
        gone = [session for session in self._sessions.values() if session.peer is peer]
        for session in gone:
            self.remove(session.key)
        return gone

    def _count(self, more: int) -> None:
        if self._partition_count + more > PARTITIONS_MAX:
            raise _full()
        self._partition_count += more


def _full() -> Refusal:
    return Refusal(
        ErrorCode.SHARE_SESSION_LIMIT_REACHED, "This broker has as many share sessions as it may."
    )
