"""Requests that wait for their answer: one per peer, and a pause after one that failed."""

import math
from dataclasses import dataclass

from moldau.consensus.effects import QuorumPeer, SendToPeer
from moldau.consensus.settings import QuorumSettings
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A request that was sent."""

    id: int
    peer: QuorumPeer
    message: Message
    expires_at: float


class Requests:
    """Only an answer to what is outstanding counts; a new role begins with nothing outstanding."""

    def __init__(self, settings: QuorumSettings) -> None:
        self._timeout_ms = settings.answer_timeout_ms
        self._backoff = settings.retry_backoff_ms / 1000
        self._last_id = 0
        self._outstanding: dict[int, Outstanding] = {}
        self._resting: dict[int, float] = {}
        self.silent: set[int] = set()
        """Peers whose last request expired without a word."""

    def is_ready(self, node_id: int, now: float) -> bool:
        """Say whether a request may go to this peer."""
        return node_id not in self._outstanding and self._resting.get(node_id, now) <= now

    def is_resting(self, node_id: int, now: float) -> bool:
        """Say whether the last request to this peer failed just now."""
        return self._resting.get(node_id, now) > now

    @property
    def is_fetching(self) -> bool:
        """Whether there is a fetch outstanding: one at a time, wherever it goes."""
        return any(
            isinstance(each.message, FetchRequest | FetchSnapshotRequest)
            for each in self._outstanding.values()
        )

    def send(self, peer: QuorumPeer, message: Message, now: float) -> SendToPeer:
        """Note a request, and return the effect that sends it."""
        self._last_id += 1
        outstanding = Outstanding(self._last_id, peer, message, now + self._timeout_ms / 1000)
        self._outstanding[peer.node_id] = outstanding
        return SendToPeer(self._last_id, peer, message, self._timeout_ms)

    def take(self, request_id: int) -> Outstanding | None:
        """Return what an answer is for, unless it comes too late."""
        for node_id, each in self._outstanding.items():
            if each.id == request_id:
                self.silent.discard(node_id)
                return self._outstanding.pop(node_id)
        return None

    def rest(self, peer: QuorumPeer, now: float) -> None:
        """Leave a peer alone for a moment: its answer was none that leads on."""
        self._resting[peer.node_id] = now + self._backoff

    def expire(self, now: float) -> None:
        """Give up requests whose time is over."""
        for node_id, each in list(self._outstanding.items()):
            if each.expires_at <= now:
                del self._outstanding[node_id]
                self.silent.add(node_id)
        for node_id, until in list(self._resting.items()):
            if until <= now:
                del self._resting[node_id]

    def reset(self) -> None:
        """Take no answer to what was asked in another role."""
        self._outstanding.clear()
        self._resting.clear()
        self.silent.clear()

    @property
    def next_at(self) -> float:
        """When something changes here by itself."""
        expiries = [each.expires_at for each in self._outstanding.values()]
        return min([*expiries, *self._resting.values()], default=math.inf)
