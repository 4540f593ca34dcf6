"""What a broker has for share groups: the sessions of their members, and what it leads of them."""

from functools import partial
from typing import TYPE_CHECKING

from moldau.broker.calls import Peer
from moldau.broker.shares.partition import LedShare
from moldau.broker.shares.sessions import SessionKey, ShareSession, ShareSessions
from moldau.coordination.refusal import Refusal
from moldau.metadata.features import SHARE_VERSION
from moldau.replication.replica import Replica
from moldau.sharing.share_state import ShareKey

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker


class Shares:
    """Sessions, and share partitions while a member of their group has one."""

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker
        self.sessions = ShareSessions()
        self._led: dict[ShareKey, LedShare] = {}

    def __len__(self) -> int:
        return len(self._led)

    @property
    def is_enabled(self) -> bool:
        """Whether the cluster has share groups."""
        return self._broker.image.levels.get(SHARE_VERSION, 0) >= 1

    # Partitions.

    def find(self, key: ShareKey) -> LedShare | None:
        """Return a share partition, None if no member fetched from it, or it is led no more."""
        share = self._led.get(key)
        if share is not None and not share.is_current:
            share.drop()
            return None
        return share

    def lead(self, key: ShareKey, replica: Replica) -> LedShare:
        """Return a share partition, which is loaded if it was not asked for before."""
        share = self.find(key)
        if share is None:
            share = self._led[key] = LedShare(self._broker, key, replica, self._dropped)
        return share

    def _dropped(self, share: LedShare) -> None:
        # Another one may have taken its place, if it hears late that it leads no more.
        if self._led.get(share.key) is share:
            del self._led[share.key]

    # Sessions.

    def watch(self, peer: Peer) -> None:
        """End the sessions of a connection when it goes."""
        if peer.on_close is None:
            peer.on_close = partial(self._gone, peer)

    def _gone(self, peer: Peer) -> None:
        for session in self.sessions.remove_all_of(peer):
            self._release(session)

    def end(self, key: SessionKey) -> None:
        """End a session: what its member has acquired is for others."""
        session = self.sessions.remove(key)
        if session is not None:
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        is_last = not self.sessions.has_group(group_id)
        for share in [each for each in self._led.values() if each.key.group_id == group_id]:
            share.release(member_id, _ignored)
            if is_last:
                share.drop()


def _ignored(_refusal: Refusal | None) -> None:
    """What is not released now is when its lock ends."""
