"""A member of the consumer group protocol (KIP-848): heartbeats, and the broker shares out.

    OUT -> JOINING -> MEMBER <-> reconciling: give up, tell; take, tell; say so
     ^        ^          |
     |        +- fenced -+
     +--- left, not polled

An answer names all that the member is to have. It gives up what is not among it, takes what is new,
and the next heartbeat says what it has: only then the broker gives others what was given up.
"""

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

from moldau.client.errors import KafkaError
from moldau.client.membership import MOVED, GroupMembership
from moldau.client.membership_events import (
    AssignedPartitions,
    AssignmentChange,
    CallUser,
    CommitRefused,
    CountsSeen,
    FindCoordinator,
    FindNames,
    MemberRules,
    MemberSignature,
    NamesSeen,
    TopicsSubscribed,
)
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.schema import Message

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_NOW_EPOCH: Final = -2
"""A static member's: what it has is kept for it until its session ends."""

FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})

Target = dict[bytes, frozenset[int]]
"""Partitions by the ids of their topics."""


class ConsumerPhase(Enum):
    """How far a member is."""

    OUT = auto()
    JOINING = auto()
    MEMBER = auto()


class ConsumerMembership(GroupMembership):
    """A member whose coordinator shares out."""

    def __init__(self, rules: MemberRules, chance: Callable[[], float], member_id: str) -> None:
        super().__init__(rules, chance)
        self.phase = ConsumerPhase.OUT
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self._interval = rules.heartbeat_interval
        self._beat_at = 0.0
        self._names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        """Of the topics that something is owned of."""
        self._target: Target | None = None
        """What is to be had, while it may differ from what is."""
        self._asked_names: frozenset[bytes] = frozenset()
        self._is_new = True
        """Whether the user was told nothing yet, not even that there is nothing."""
        self._said: TopicsSubscribed | None = None
        self._said_owned: AssignedPartitions | None = None

    @property
    def identity(self) -> MemberSignature | None:
        """How to sign commits: by the epoch that the coordinator has given."""
        return MemberSignature(self.member_id, self.epoch) if self.epoch > JOIN_EPOCH else None

    def _own_time(self) -> float | None:
        if self.phase is ConsumerPhase.OUT or self._awaits(ConsumerGroupHeartbeatRequest):
            return None
        return max(self._beat_at, self._not_before)

    # What the user and the cluster say.

    def _subscription_changed(self) -> None:
        self._beat_at = self._now

    def _found(self, event: CountsSeen | NamesSeen) -> None:
        if isinstance(event, NamesSeen):
            self._names |= event.names
            self._asked_names = frozenset()

    def _refused(self, event: CommitRefused) -> None:
        if event.error.code in (*FENCED, ErrorCode.STALE_MEMBER_EPOCH):
            # A heartbeat finds out which of it is true.
            self._beat_at = self._now

    # What is next.

    def _advance(self) -> None:
        if self.phase is ConsumerPhase.OUT:
            if not self._was_polled:
                return
            self.phase = ConsumerPhase.JOINING
            self._beat_at = self._now
        self._reconcile()
        self._beat()

    def _reconcile(self) -> None:
        """Go on with the target as far as the names of its topics are known."""
        if self._target is None or self._calling is not None:
            return
        unknown = frozenset(self._target) - frozenset(self._names)
        if unknown and unknown != self._asked_names:
            self._asked_names = unknown
            self._effects.append(FindNames(unknown))
        ids = {self._names[each]: each for each in self._target if each not in unknown}
        wanted = frozenset(
            TopicPartition(name, number) for name in ids for number in self._target[ids[name]]
        )
        # A topic of the same name may be another one by now.
        kept = frozenset(
            key for key in self.owned & wanted if self._ids[key.topic] == ids[key.topic]
        )
        if not unknown:
            self._target = None
        if kept == self.owned and kept == wanted and (unknown or not self._is_new):
            return
        self._is_new = False
        self._ids |= ids
        self._calls.append(CallUser(AssignmentChange.REVOKED, self.owned - kept))
        self._calls.append(CallUser(AssignmentChange.ASSIGNED, wanted - kept))
        self._call_next()

    def _beat(self) -> None:
        if self.phase is ConsumerPhase.OUT or self._awaits(ConsumerGroupHeartbeatRequest):
            return
        is_news = self._calling is None and (
            self.subscription != self._said or self.owned != self._said_owned
        )
        if self._now < self._not_before or (self._now < self._beat_at and not is_news):
            return
        self._beat_at = self._now + self._interval
        self._send(self._heartbeat())

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        subscription, said = self.subscription, self._said
        assert subscription is not None, "a member has subscribed"
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.rules.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.rules.instance_id,
        )
        if said is None:
            request.rack_id = self.rules.rack
            request.rebalance_timeout_ms = round(self.rules.poll_interval_max * 1000)
            request.server_assignor = self.rules.remote_assignor
        if subscription != said:
            request.subscribed_topic_names = sorted(subscription.topics)
            if subscription.regex is not None or (said is not None and said.regex is not None):
                request.subscribed_topic_regex = subscription.regex or ""
            self._said = subscription
        if self.owned != self._said_owned:
            # What is given up is owned until the user knows.
            request.topic_partitions = self._by_id(self.owned)
            self._said_owned = self.owned
        return request

    def _by_id(self, partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
        rows: dict[bytes, list[int]] = {}
        for key in sorted(partitions):
            rows.setdefault(self._ids[key.topic], []).append(key.partition)
        return [TopicPartitions(topic_id=each, partitions=rows[each]) for each in rows]

    def _farewell(self) -> Message | None:
        if self.phase is ConsumerPhase.OUT:
            return None
        is_static = self.rules.instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=self.rules.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_FOR_NOW_EPOCH if is_static else LEAVE_EPOCH,
            instance_id=self.rules.instance_id,
        )

    def _reset(self) -> None:
        super()._reset()
        self.phase = ConsumerPhase.OUT
        self.epoch = JOIN_EPOCH
        self._target = None
        self._asked_names = frozenset()
        self._is_new = True
        self._say_all()

    def _say_all(self) -> None:
        """Nobody knows what the coordinator has heard: say everything with the next heartbeat."""
        self._said = None
        self._said_owned = None

    # What the coordinator says.

    def _lost(self, _request: Message) -> None:
        self._say_all()
        self._wait()

    def _answered(self, request: Message, answer: Message) -> None:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), "no answer to a heartbeat"
        code = answer.error_code
        if code == ErrorCode.NONE:
            self._accepted(answer)
        elif code in FENCED:
            self._reset()
        elif code in MOVED or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if code in MOVED:
                self._effects.append(FindCoordinator())
            self._lost(request)
        else:
            error = KafkaError(code, f"group {self.rules.group_id}", answer.error_message)
            if error.retriable:
                self._lost(request)
            else:
                self._fail(error)

    def _accepted(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self._succeed()
        self.phase = ConsumerPhase.MEMBER
        self.epoch = answer.member_epoch
        if answer.heartbeat_interval_ms > 0:
            self._interval = answer.heartbeat_interval_ms / 1000
        self._beat_at = self._now + self._interval
        if answer.assignment is not None:
            self._target = {
                each.topic_id: frozenset(each.partitions)
                for each in answer.assignment.topic_partitions
            }
            # Names of topics that are of no concern any more are forgotten.
            self._names = {each: self._names[each] for each in self._target if each in self._names}
