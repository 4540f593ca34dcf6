"""ShareGroupHeartbeat v1: what a share group's member tells the coordinator, and what it learns."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Final

from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1

FENCING: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
"""The coordinator has given the member up: it joins anew."""


class Next(Enum):
    """What to do after a heartbeat was refused."""

    TRY_AGAIN = auto()
    JOIN = auto()
    GIVE_UP = auto()


class ShareMemberState:
    """The member's side; who sends the heartbeats, and when, is another matter."""

    def __init__(self, group_id: str, member_id: str, rack: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = JOINING_EPOCH
        self.assignment: dict[bytes, Sequence[int]] = {}
        """By topic ids, the partitions to read; several members may have the same."""
        self._rack = rack or None
        self._names: tuple[str, ...] = ()
        self._saying: tuple[str, ...] = ()
        self._told: tuple[str, ...] | None = None  # None while that is not certain

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that it subscribes to."""
        return self._names

    @property
    def is_member(self) -> bool:
        """Whether the coordinator counts it among the group."""
        return self.epoch > JOINING_EPOCH

    def subscribe(self, names: Iterable[str]) -> None:
        """Choose topics; the next heartbeat says so."""
        self._names = tuple(sorted(set(names)))

    def heartbeat(self) -> ShareGroupHeartbeatRequest:
        """Return the next heartbeat: everything at first, later what is new.

        Nobody knows whether the coordinator has heard what was not answered, and an assignment
        that went with the answer is not repeated, unless the topics are.
        """
        is_joining = self.epoch == JOINING_EPOCH
        is_news = self._told != self._names
        self._saying, self._told = self._names, None
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rack_id=self._rack if is_joining else None,
            subscribed_topic_names=list(self._names) if is_news else None,
        )

    def farewell(self) -> ShareGroupHeartbeatRequest:
        """Return the heartbeat that leaves the group; nothing is assigned from now on."""
        self.leave()
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING_EPOCH
        )

    def leave(self) -> None:
        """Be no member any more: the next heartbeat joins."""
        self.epoch = JOINING_EPOCH
        self.assignment = {}
        self._told = None

    def answered(self, answer: ShareGroupHeartbeatResponse) -> None:
        """Take over the epoch, and the assignment where it has changed."""
        self.epoch = answer.member_epoch
        self._told = self._saying
        if answer.assignment is not None:
            self.assignment = {
                each.topic_id: each.partitions for each in answer.assignment.topic_partitions
            }

    def refused(self, code: ErrorCode) -> Next:
        """Decide what an error means."""
        if code in FENCING:
            self.leave()
            return Next.JOIN
        return Next.TRY_AGAIN if code.retriable else Next.GIVE_UP
