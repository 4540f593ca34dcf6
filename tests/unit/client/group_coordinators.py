"""Coordinators of both protocols with Kafka's rules, as far as members can tell."""

from dataclasses import dataclass, field

from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.schema import Message

TOPIC = "t"
TOPIC_ID = bytes(range(16))
SESSION = 10.0
REBALANCE = 60.0

Answers = list[tuple[Message, Message]]
"""Requests with their answers: some of other members, which were parked."""


@dataclass
class ClassicMember:
    join: JoinGroupRequest | None
    sync: SyncGroupRequest | None = None
    metadata: bytes = b""
    protocol: str = ""
    heard: float = 0.0
    assignment: bytes = b""


class ClassicCoordinator:
    """JoinGroup parks until all members have come, SyncGroup until the leader has."""

    def __init__(self) -> None:
        self.generation = 0
        self.phase = "empty"
        self.members: dict[str, ClassicMember] = {}
        self.pending: set[str] = set()
        self.leader = ""
        self.deadline = 0.0
        self._count = 0

    def is_current(self, member_id: str, epoch: int) -> bool:
        return member_id in self.members and epoch == self.generation

    def handle(self, request: Message, now: float) -> Answers:
        match request:
            case JoinGroupRequest():
                return self._join(request, now)
            case SyncGroupRequest():
                return self._sync(request, now)
            case HeartbeatRequest():
                code = self._check(request.member_id, request.generation_id)
                if code == ErrorCode.NONE:
                    self.members[request.member_id].heard = now
                    if self.phase == "preparing":
                        code = ErrorCode.REBALANCE_IN_PROGRESS
                return [(request, HeartbeatResponse(error_code=code))]
            case LeaveGroupRequest():
                member_id = request.members[0].member_id
                self.pending.discard(member_id)
                answers: Answers = [(request, LeaveGroupResponse())]
                if member_id in self.members:
                    answers += self._remove(member_id, now)
                return answers
        raise AssertionError(request)

    def tick(self, now: float) -> Answers:
        answers: Answers = []
        for member_id, member in list(self.members.items()):
            is_parked = member.join is not None or member.sync is not None
            if not is_parked and now > member.heard + SESSION:
                answers += self._remove(member_id, now)
        if self.phase == "preparing" and now > self.deadline:
            self.members = {
                each: self.members[each] for each in self.members if self.members[each].join
            }
            answers += self._complete(now)
        return answers

    def disconnect(self, request: Message) -> None:
        """A connection with a parked request is gone: the member will ask again."""
        for member in self.members.values():
            if member.sync is request:
                member.sync = None

    def _check(self, member_id: str, generation: int) -> ErrorCode:
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _join(self, request: JoinGroupRequest, now: float) -> Answers:
        member_id = request.member_id
        if not member_id:
            self._count += 1
            member_id = f"m{self._count}"
            self.pending.add(member_id)
            code = ErrorCode.MEMBER_ID_REQUIRED
            return [(request, JoinGroupResponse(error_code=code, member_id=member_id))]
        if member_id not in self.members and member_id not in self.pending:
            return [(request, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))]
        self.pending.discard(member_id)
        member = self.members.setdefault(member_id, ClassicMember(None))
        chosen = request.protocols[0]
        member.join, member.protocol, member.metadata = request, chosen.name, chosen.metadata
        member.heard = now
        return [*self._prepare(now), *self._complete_if_all(now)]

    def _prepare(self, now: float) -> Answers:
        answers: Answers = []
        if self.phase != "preparing":
            self.phase = "preparing"
            self.deadline = now + REBALANCE
            for member in self.members.values():
                if member.sync is not None:
                    code = ErrorCode.REBALANCE_IN_PROGRESS
                    answers.append((member.sync, SyncGroupResponse(error_code=code)))
                    member.sync = None
        return answers

    def _remove(self, member_id: str, now: float) -> Answers:
        del self.members[member_id]
        return [*self._prepare(now), *self._complete_if_all(now)]

    def _complete_if_all(self, now: float) -> Answers:
        if all(member.join is not None for member in self.members.values()):
            return self._complete(now)
        return []

    def _complete(self, now: float) -> Answers:
        self.generation += 1
        self.phase = "completing" if self.members else "empty"
        self.leader = min(self.members, default="")
        answers: Answers = []
        for member_id, member in self.members.items():
            assert member.join is not None
            rows = [
                JoinGroupResponseMember(member_id=each, metadata=self.members[each].metadata)
                for each in self.members
            ]
            answer = JoinGroupResponse(
                generation_id=self.generation,
                protocol_name=member.protocol,
                leader=self.leader,
                member_id=member_id,
                members=rows if member_id == self.leader else [],
            )
            answers.append((member.join, answer))
            member.join = None
            member.heard = now
            member.assignment = b""
        return answers

    def _sync(self, request: SyncGroupRequest, now: float) -> Answers:
        code = self._check(request.member_id, request.generation_id)
        if code == ErrorCode.NONE and self.phase == "preparing":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code != ErrorCode.NONE:
            return [(request, SyncGroupResponse(error_code=code))]
        member = self.members[request.member_id]
        member.heard = now
        if self.phase == "completing":
            member.sync = request
            if request.member_id != self.leader:
                return []
            self.phase = "stable"
            for row in request.assignments:
                self.members[row.member_id].assignment = row.assignment
            answers: Answers = []
            for each in self.members.values():
                if each.sync is not None:
                    answers.append((each.sync, SyncGroupResponse(assignment=each.assignment)))
                    each.sync, each.heard = None, now
            return answers
        return [(request, SyncGroupResponse(assignment=member.assignment))]


@dataclass
class EpochMember:
    epoch: int = 0
    previous: int = -1
    assigned: set[int] = field(default_factory=set)
    revoking: set[int] = field(default_factory=set)
    heard: float = 0.0
    revoking_since: float = 0.0


class EpochCoordinator:
    """KIP-848: a target for each member, reached by steps that members acknowledge."""

    def __init__(self) -> None:
        self.epoch = 0
        self.phase = "stable"
        self.partitions = 0
        self.members: dict[str, EpochMember] = {}
        self.target: dict[str, set[int]] = {}

    def is_current(self, member_id: str, epoch: int) -> bool:
        return member_id in self.members and epoch in (
            self.members[member_id].epoch,
            self.members[member_id].previous,
        )

    def grow(self, count: int) -> None:
        self.partitions = count
        self._share_out()

    def disconnect(self, request: Message) -> None:
        """Nothing is parked here."""

    def tick(self, now: float) -> Answers:
        for member_id, member in list(self.members.items()):
            is_slow = member.revoking and now > member.revoking_since + REBALANCE
            if is_slow or now > member.heard + SESSION:
                del self.members[member_id]
                self._share_out()
        return []

    def handle(self, request: Message, now: float) -> Answers:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        return [(request, self._beat(request, now))]

    def _share_out(self) -> None:
        self.epoch += 1
        names = sorted(self.members)
        self.target = {
            name: set(range(place, self.partitions, len(names))) for place, name in enumerate(names)
        }

    def _beat(
        self, request: ConsumerGroupHeartbeatRequest, now: float
    ) -> ConsumerGroupHeartbeatResponse:
        member_id = request.member_id
        if request.member_epoch < 0:
            if self.members.pop(member_id, None) is not None:
                self._share_out()
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        owned = None
        if request.topic_partitions is not None:
            owned = {number for each in request.topic_partitions for number in each.partitions}
        if request.member_epoch == 0:
            assert owned == set(), "who joins has nothing"
            assert request.subscribed_topic_names == [TOPIC]
            self.members[member_id] = EpochMember()
            self._share_out()
        member = self.members.get(member_id)
        if member is None:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        is_repeated = request.member_epoch == member.previous and (
            owned is not None and owned <= member.assigned
        )
        if request.member_epoch != member.epoch and not is_repeated:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH)
        member.heard = now
        before = set(member.assigned)
        self._reconcile(member_id, member, owned, now)
        is_full = request.rebalance_timeout_ms != -1 and owned is not None
        assignment = None
        if is_full or member.assigned != before:
            rows = [TopicPartitions(topic_id=TOPIC_ID, partitions=sorted(member.assigned))]
            assignment = Assignment(topic_partitions=rows if member.assigned else [])
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=3000,
            assignment=assignment,
        )

    def _reconcile(
        self, member_id: str, member: EpochMember, owned: set[int] | None, now: float
    ) -> None:
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking = set()
        target = self.target.get(member_id, set())
        if member.assigned - target:
            member.revoking = member.assigned - target
            member.assigned &= target
            member.revoking_since = now
            return
        held = {
            number
            for other, each in self.members.items()
            if other != member_id
            for number in each.assigned | each.revoking
        }
        member.assigned |= target - held
        if member.epoch != self.epoch:
            member.previous, member.epoch = member.epoch, self.epoch


def keys(numbers: set[int]) -> set[TopicPartition]:
    return {TopicPartition(TOPIC, number) for number in numbers}
