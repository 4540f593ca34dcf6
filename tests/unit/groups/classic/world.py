"""A shard of groups without a broker: records, answers and timers, step by step."""

from moldau.coordination.command import Ticket
from moldau.coordination.decision import CancelTimer, Decision, Reply, SetTimer
from moldau.coordination.producer import NO_PRODUCER
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import decode_record, record_types
from moldau.groups.machine import GroupMachine
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.stored import offsets
from tests.unit.groups.request_commands import command_of

TYPES = record_types(offsets)
GROUP = "g"
START_MS = 1_700_000_000_000
DELAY = 3.0
"""Seconds that the first rebalance of a group waits."""


class Context:
    """A broker, as groups see it."""

    def __init__(self, **settings: object) -> None:
        texts = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.settings = broker_settings(BrokerLayers(texts))
        self.record_bytes_max = 1 << 20
        self._count = 0

    def entropy(self, size: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(size, "big")


class World:
    """Time, the log and whoever waits; what is recorded is committed at once, unless told."""

    def __init__(self, **settings: object) -> None:
        self.context = Context(**settings)
        self.monotonic = 0.0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.commits = True
        self.answers: dict[Ticket, object] = {}
        self.waiting: set[Ticket] = set()
        self.ticket_count = 0
        self._start()

    @property
    def now(self) -> Instant:
        return Instant(self.monotonic, START_MS + int(self.monotonic * 1000))

    # The shard.

    def _start(self) -> None:
        self.machine = GroupMachine(self.context)
        self.timers: dict[object, float] = {}
        self.uncommitted: list[tuple[Decision, Ticket | None]] = []
        self.committed = len(self.log)
        for offset, (key, value) in enumerate(self.log):
            decoded = decode_record(TYPES, key, value)
            assert decoded is not None
            self.machine.replay(Offset(offset), NO_PRODUCER, *decoded)
        self._act(self.machine.loaded(self.now), None)

    def submit(self, command: object) -> Ticket:
        ticket = Ticket(self.ticket_count)
        self.ticket_count += 1
        self.waiting.add(ticket)
        try:
            self._act(self.machine.decide(command, ticket, self.now), ticket)
        except Refusal as refusal:
            self._answer(ticket, refusal)
        return ticket

    def _act(self, decision: Decision, ticket: Ticket | None) -> None:
        for record in decision.records:
            self.log.append(record.encode())
            offset = Offset(len(self.log) - 1)
            self.machine.replay(offset, NO_PRODUCER, record.key, record.value)
        for effect in decision.effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
        self.uncommitted.append((decision, ticket))
        if self.commits:
            self.commit()

    def commit(self) -> None:
        """Commit all that is recorded, and answer."""
        self.committed = len(self.log)
        settled, self.uncommitted = self.uncommitted, []
        for decision, ticket in settled:
            if ticket is not None and decision.response is not None:
                self._answer(ticket, decision.response)
            for effect in decision.effects:
                if isinstance(effect, Reply):
                    self._answer(effect.ticket, effect.response)

    def _answer(self, ticket: Ticket, response: object) -> None:
        assert ticket in self.waiting, "answered twice"
        self.waiting.discard(ticket)
        self.answers[ticket] = response

    def restart(self, *, keep: int | None = None) -> None:
        """Begin again with the log: with all of it, or with what is committed and a bit more."""
        if keep is not None:
            assert keep >= self.committed
            del self.log[keep:]
        self.waiting.clear()
        self._start()

    def advance(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        end = self.monotonic + seconds
        while self.timers:
            key = min(self.timers, key=lambda each: self.timers[each])
            at = self.timers[key]
            if at > end:
                break
            del self.timers[key]
            self.monotonic = max(self.monotonic, at)
            self._act(self.machine.expire(key, self.now), None)
        self.monotonic = end

    # Members.

    def ask(self, request: object, version: int, client_id: str = "c") -> Ticket:
        return self.submit(command_of(request, version, client_id, "/127.0.0.1"))

    def take(self, ticket: Ticket):
        """Return an answer that is there."""
        return self.answers.pop(ticket)

    def join(self, member_id: str = "", *, version: int = 9, **fields) -> Ticket:
        """Ask to join."""
        values = {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": protocols(range=b"topics"),
            "member_id": member_id,
        }
        return self.ask(JoinGroupRequest(**values | fields), version)

    def new_id(self, **fields) -> str:
        """Get an id to join with."""
        return self.take(self.join(**fields)).member_id

    def sync(self, member_id: str, generation: int, parts=None, *, version=3, **fields) -> Ticket:
        """Ask for the member's part; a leader has everybody's."""
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=part)
                for each, part in (parts or {}).items()
            ],
            **fields,
        )
        return self.ask(request, version)

    def beat(self, member_id: str, generation: int, instance_id: str | None = None):
        """Send a heartbeat, and return the code of its answer."""
        request = HeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance_id,
        )
        answer = self.take(self.ask(request, 4))
        return answer.code if isinstance(answer, Refusal) else answer.error_code

    def leave(self, *identities: tuple[str, str | None]):
        """Leave, and return the codes for each member."""
        members = [
            MemberIdentity(member_id=member, group_instance_id=instance)
            for member, instance in identities
        ]
        answer = self.take(self.ask(LeaveGroupRequest(group_id=GROUP, members=members), 5))
        return [each.error_code for each in answer.members]

    def stable(self, size: int = 2) -> list[str]:
        """Make a group of dynamic members, each with its part; the first one leads."""
        members = [self.new_id() for _ in range(size)]
        tickets = [self.join(each) for each in members]
        self.advance(DELAY * 2)
        answers = [self.take(each) for each in tickets]
        assert answers[0].leader == members[0]
        generation = answers[0].generation_id
        parts = {each: each.encode() for each in members}
        syncs = [self.sync(members[0], generation, parts)]
        syncs += [self.sync(each, generation) for each in members[1:]]
        assert [self.take(each).assignment for each in syncs] == [*parts.values()]
        return members

    @property
    def group(self):
        return self.machine.shelf.groups[GROUP]

    @property
    def state(self) -> str:
        return self.group.state_name

    @property
    def generation(self) -> int:
        return self.group.membership.generation


def protocols(**metadata: bytes) -> list[JoinGroupRequestProtocol]:
    """Return what a member speaks, the best first."""
    return [JoinGroupRequestProtocol(name=name, metadata=said) for name, said in metadata.items()]
