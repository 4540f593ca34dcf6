"""A member of the classic group protocol: join, share out if it leads, sync, send heartbeats.

    OUT -> JOINING -> (COUNTING, if it leads) -> SYNCING -> STABLE
     ^        ^                                                |
     |        +---- told to join again, after callbacks -------+
     +------ left, fenced, not polled

An eager member gives everything up before it joins again, a cooperative one only what it is told
to, and joins once more when it has (KIP-429).
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from moldau.client.assignors import ClientAssignor, subscription_for
from moldau.client.errors import KafkaError
from moldau.client.member_metadata import (
    NO_GENERATION,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from moldau.client.membership import MOVED, GroupMembership
from moldau.client.membership_events import (
    AssignedPartitions,
    AssignmentChange,
    CallUser,
    CommitRefused,
    CountsSeen,
    FindCoordinator,
    FindCounts,
    MemberRules,
    MemberSignature,
    NamesSeen,
)
from moldau.client.subscribers import Subscriber
from moldau.kernel.errors import ProtocolError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from moldau.protocol.schema import Message

PROTOCOL_TYPE: Final = "consumer"


class ClassicPhase(Enum):
    """How far a member is."""

    OUT = auto()
    JOINING = auto()
    COUNTING = auto()
    SYNCING = auto()
    STABLE = auto()


class ClassicMembership(GroupMembership):
    """A member whose leader shares out."""

    def __init__(self, rules: MemberRules, chance: Callable[[], float]) -> None:
        super().__init__(rules, chance)
        self.phase = ClassicPhase.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        self._is_cooperative = all(each.is_cooperative for each in rules.assignors)
        self._must_join = False
        self._joined_topics: frozenset[str] = frozenset()
        self._last: AssignedPartitions | None = None
        self._last_generation = NO_GENERATION
        self._beat_at = 0.0
        self._heard_at = 0.0
        self._protocol = ""
        self._members: list[Subscriber] = []
        self._counts: dict[str, int] | None = None
        """What the leader has shared out."""

    @property
    def identity(self) -> MemberSignature | None:
        """How to sign commits: by the generation that was joined last."""
        if not self.member_id or self.generation == NO_GENERATION:
            return None
        return MemberSignature(self.member_id, self.generation)

    @property
    def watched(self) -> frozenset[str]:
        """The topics whose growth makes the group share out anew: the leader's business."""
        if self.phase not in (ClassicPhase.SYNCING, ClassicPhase.STABLE):
            return frozenset()
        return frozenset(topic for each in self._members for topic in each.subscription.topics)

    def _own_time(self) -> float | None:
        if self.phase is ClassicPhase.OUT:
            may_join = self._must_join and self._was_polled and self._calling is None
            return self._not_before if may_join else None
        if self.phase in (ClassicPhase.STABLE, ClassicPhase.COUNTING):
            return self._beat_at if not self._awaits(HeartbeatRequest) else None
        return None

    # What the user and the cluster say.

    def _subscription_changed(self) -> None:
        self._must_join = True

    def _found(self, event: CountsSeen | NamesSeen) -> None:
        topics = frozenset(topic for each in self._members for topic in each.subscription.topics)
        if isinstance(event, NamesSeen) or not topics <= event.asked:
            return
        counts = {topic: event.counts[topic] for topic in topics if topic in event.counts}
        if self.phase is ClassicPhase.COUNTING:
            self._share_out(counts)
        elif self.watched:
            self._must_join = self._must_join or self._counts not in (None, counts)
            self._counts = counts

    def _refused(self, event: CommitRefused) -> None:
        match event.error.code:
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._reset()
            case ErrorCode.ILLEGAL_GENERATION if self.phase is ClassicPhase.STABLE:
                # While it joins, the answer with the next generation may be on its way.
                self._forget_generation()
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self._must_join = True
            case ErrorCode.FENCED_INSTANCE_ID:
                self._fail(event.error)
            case _:
                pass

    # What is next.

    def _advance(self) -> None:
        if self.phase is ClassicPhase.STABLE and self._must_join:
            self._prepare()
        if self.phase is ClassicPhase.OUT and self._must_join and self._was_polled:
            if self._calling is None and self._now >= self._not_before:
                self._join()
        else:
            self._beat()

    def _prepare(self) -> None:
        assert self.subscription is not None, "a member has subscribed"
        given_up = self.owned
        if self._is_cooperative:
            given_up = frozenset(
                key for key in self.owned if key.topic not in self.subscription.topics
            )
        self._call(AssignmentChange.REVOKED, given_up)
        if self._calling is None:
            self.phase = ClassicPhase.OUT

    def _join(self) -> None:
        assert self.subscription is not None, "who joins has subscribed"
        self.phase = ClassicPhase.JOINING
        self._must_join = False
        self._joined_topics = self.subscription.topics
        wanted = Subscription(
            sorted(self._joined_topics), sorted(self.owned), self.generation, self.rules.rack
        )
        self._send(
            JoinGroupRequest(
                group_id=self.rules.group_id,
                session_timeout_ms=round(self.rules.session_timeout * 1000),
                rebalance_timeout_ms=round(self.rules.poll_interval_max * 1000),
                member_id=self.member_id,
                group_instance_id=self.rules.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[
                    JoinGroupRequestProtocol(
                        name=each.name,
                        metadata=encode_subscription(
                            subscription_for(each, wanted, self._last, self._last_generation)
                        ),
                    )
                    for each in self.rules.assignors
                ],
            )
        )

    def _beat(self) -> None:
        if (
            self.phase not in (ClassicPhase.STABLE, ClassicPhase.COUNTING)
            or self._now < self._beat_at
        ):
            return
        if self._awaits(HeartbeatRequest):
            return
        if self._now - self._heard_at > self.rules.session_timeout:
            self._effects.append(FindCoordinator())
            self._heard_at = self._now
        self._beat_at = self._now + self.rules.heartbeat_interval
        self._send(
            HeartbeatRequest(
                group_id=self.rules.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.rules.instance_id,
            )
        )

    def _farewell(self) -> Message | None:
        # A static member is expected back: who wants it out says so by an admin client.
        if not self.member_id or self.rules.instance_id is not None:
            return None
        return LeaveGroupRequest(
            group_id=self.rules.group_id,
            members=[MemberIdentity(member_id=self.member_id, reason="the consumer leaves")],
        )

    def _reset(self) -> None:
        super()._reset()
        self.member_id = ""
        self._forget_generation()

    def _forget_generation(self) -> None:
        self.generation = NO_GENERATION
        self._again()

    def _again(self) -> None:
        """Join again, as the member that it is."""
        self.phase = ClassicPhase.OUT
        self._outstanding.clear()
        self._calls.clear()
        self._must_join = True

    # What the coordinator says.

    def _lost(self, request: Message) -> None:
        if isinstance(request, HeartbeatRequest):
            self._beat_at = min(self._beat_at, self._now + self.rules.backoff)
        else:
            self._again()
            self._wait()

    def _answered(self, request: Message, answer: Message) -> None:
        match answer:
            case JoinGroupResponse() if answer.error_code == ErrorCode.NONE:
                self._joined(answer)
            case JoinGroupResponse() if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                self._again()
            case SyncGroupResponse() if answer.error_code == ErrorCode.NONE:
                self._synced(answer)
            case HeartbeatResponse() if answer.error_code == ErrorCode.NONE:
                self._heard_at = self._now
            case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse():
                self._erred(request, KafkaError(answer.error_code, f"group {self.rules.group_id}"))
            case _:
                raise AssertionError(f"no answer to a member: {answer}")

    def _erred(self, request: Message, error: KafkaError) -> None:
        is_heartbeat = isinstance(request, HeartbeatRequest)
        match error.code:
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._reset()
            case ErrorCode.ILLEGAL_GENERATION:
                self._forget_generation()
            case ErrorCode.REBALANCE_IN_PROGRESS if is_heartbeat:
                self._heard_at = self._now
                self._must_join = True
            case ErrorCode.REBALANCE_IN_PROGRESS if isinstance(request, SyncGroupRequest):
                self._again()
            case code if code in MOVED or code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                if code in MOVED:
                    self._effects.append(FindCoordinator())
                self._lost(request)
            case code if error.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._lost(request)
            case _:
                self._fail(error)

    def _joined(self, answer: JoinGroupResponse) -> None:
        self._succeed()
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self._protocol = answer.protocol_name or ""
        self._heard_at = self._now
        self._beat_at = self._now + self.rules.heartbeat_interval
        self._members = []
        self._counts = None
        if answer.leader != answer.member_id:
            self._sync([])
            return
        self._members = [
            Subscriber(each.member_id, _read(each.metadata), each.group_instance_id)
            for each in answer.members
        ]
        if answer.skip_assignment:
            # KIP-814: a static leader came back, and everyone keeps what they have.
            self._sync([])
            return
        self.phase = ClassicPhase.COUNTING
        topics = (topic for each in self._members for topic in each.subscription.topics)
        self._effects.append(FindCounts(frozenset(topics)))

    def _share_out(self, counts: dict[str, int]) -> None:
        assignor = self._assignor()
        if assignor is None:
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            self._fail(KafkaError(code, f"group {self.rules.group_id}", self._protocol))
            return
        self._counts = counts
        assignments = assignor.assign(counts, self._members)
        self._sync(
            [
                SyncGroupRequestAssignment(
                    member_id=member_id, assignment=encode_assignment(partitions)
                )
                for member_id, partitions in assignments.items()
            ]
        )

    def _assignor(self) -> ClientAssignor | None:
        return next((each for each in self.rules.assignors if each.name == self._protocol), None)

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        self.phase = ClassicPhase.SYNCING
        self._outstanding.clear()
        self._send(
            SyncGroupRequest(
                group_id=self.rules.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.rules.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=self._protocol,
                assignments=assignments,
            )
        )

    def _synced(self, answer: SyncGroupResponse) -> None:
        try:
            assigned = frozenset(decode_assignment(answer.assignment))
        except ProtocolError as error:
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            self._fail(KafkaError(code, f"group {self.rules.group_id}", str(error)))
            return
        self.phase = ClassicPhase.STABLE
        self._heard_at = self._now
        self._beat_at = self._now + self.rules.heartbeat_interval
        if not {key.topic for key in assigned} <= self._joined_topics:
            self._must_join = True
            return
        self._last = assigned
        self._last_generation = self.generation
        self._change_to(assigned)

    def _change_to(self, assigned: AssignedPartitions) -> None:
        revoked = self.owned - assigned
        if revoked:
            self._calls.append(CallUser(AssignmentChange.REVOKED, revoked))
            self._must_join = True
        self._calls.append(CallUser(AssignmentChange.ASSIGNED, assigned - self.owned))


def _read(metadata: bytes) -> Subscription:
    """Read what another member wants; who sends what cannot be read gets nothing."""
    try:
        return decode_subscription(metadata)
    except ProtocolError:
        return Subscription(())
