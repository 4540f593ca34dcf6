"""Classic groups under random schedules: members, faults, and the laws that hold all the same."""

from random import Random

from moldau.coordination.command import RequestCommand, Ticket
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.stored.offsets import GroupMetadataValue
from tests.unit.groups.classic.world import GROUP, World, protocols
from tests.unit.groups.request_commands import command_of

PARTITIONS = 6
SESSION_MS = 4000
REBALANCE_MS = 5000
LAG = 5.0
"""Seconds after which what is recorded is committed, with the next step."""
PATIENCE = REBALANCE_MS / 1000 + LAG + 8.0
"""Seconds after which every request is answered; a step may take 7 of them."""


class Model(World):
    """A shard whose every answer is held against the laws."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.asked: dict[Ticket, tuple[float, RequestCommand]] = {}
        self.told: dict[int, dict[int, str]] = {}  # by generation and partition: who heard of it
        self.leaders: dict[tuple[int, int], str] = {}  # by incarnation and generation
        self.incarnation = 0
        self.committed_at = 0.0
        self.highest = 0
        super().__init__(group_initial_rebalance_delay_ms=self.random.choice([0, 500, 3000]))
        names = [None] * self.random.randint(1, 4) + ["i1", "i2"][: self.random.randint(0, 2)]
        self.clients = [Client(self, f"c{number}", name) for number, name in enumerate(names)]

    def ask(self, request: object, version: int, client_id: str = "c") -> Ticket:
        asked = command_of(request, version, client_id, "/127.0.0.1")
        # The next ticket: an answer may come before this one is known.
        self.asked[Ticket(self.ticket_count)] = self.monotonic, asked
        return self.submit(asked)

    def restart(self, *, keep: int | None = None) -> None:
        lost = sorted(self.waiting)
        self.incarnation += 1
        self.highest = 0
        super().restart(keep=keep)
        for ticket in lost:
            self.answers[ticket] = Refusal(ErrorCode.NOT_COORDINATOR, None)

    # Laws.

    def _answer(self, ticket: Ticket, response: object) -> None:
        super()._answer(ticket, response)
        _, asked = self.asked.pop(ticket)
        if isinstance(response, Refusal) or response.error_code != ErrorCode.NONE:
            return
        match asked.request:
            case JoinGroupRequest():
                leader = owner(response.leader)
                known = self.leaders.setdefault((self.incarnation, response.generation_id), leader)
                assert known == leader, "two leaders in a generation"
            case SyncGroupRequest() as request:
                self._check_part(request, response.assignment)

    def _check_part(self, request: SyncGroupRequest, part: bytes) -> None:
        recorded = (
            each
            for stored in self.recorded(self.committed)
            if stored.generation == request.generation_id
            for each in stored.members
        )
        assert any(
            each.member_id == request.member_id and each.assignment == part for each in recorded
        ), "heard of a part that is not recorded"
        owners = self.told.setdefault(request.generation_id, {})
        for partition in part:
            known = owners.setdefault(partition, owner(request.member_id))
            assert known == owner(request.member_id), "two owners in a generation"

    def recorded(self, end: int) -> list[GroupMetadataValue]:
        """Return what is recorded of the group."""
        return [GroupMetadataValue.decode(value[2:], 3) for _, value in self.log[:end] if value]

    def check(self) -> None:
        """Check what holds at any time."""
        generations = [each.generation for each in self.recorded(len(self.log))]
        assert generations == sorted(generations), "a recorded generation came after a later one"
        if GROUP in self.machine.shelf.groups:
            assert self.generation >= self.highest, "a generation came after a later one"
            self.highest = self.generation
        for ticket in self.waiting:
            since, asked = self.asked[ticket]
            assert self.monotonic - since <= PATIENCE, f"{asked.request} waits for ever"

    def check_commit(self, member_id: str, generation: int, instance_id: str | None) -> None:
        """Check that nobody commits for a generation that others have gone on from."""
        try:
            self.group.check_offset_commit(
                member_id, instance_id, generation, is_transactional=False, version=9
            )
        except Refusal:
            return
        assert generation >= max(self.told, default=0), "a stale commit is taken"

    # Schedules.

    def step(self) -> None:
        """Let something happen."""
        random = self.random
        self.advance(random.choice([0.0, 0.05, 0.3, 1.0]))
        match random.randrange(40):
            case 0:
                self.restart(keep=random.randint(self.committed, len(self.log)))
            case 1 | 2 | 3:
                self.commits = not self.commits
            case 4:
                self.advance(random.uniform(1.0, 6.0))
            case 5 | 6 | 7 | 8:
                random.choice(self.clients).meet_with_a_fault()
        is_late = self.monotonic > self.committed_at + LAG
        if self.commits or is_late or random.random() < 0.5:
            self.committed_at = self.monotonic
            self.commit()
        for client in random.sample(self.clients, len(self.clients)):
            client.go_on()
        self.check()

    def calm_down(self) -> None:
        """Let everybody do what it should until the group has settled."""
        self.commits = True
        self.commit()
        # Some never come back: the others do without them.
        self.clients = [each for each in self.clients if each.is_up] or self.clients
        for client in self.clients:
            client.is_up = True
            client.wake_up()
        for _ in range(200):
            self.advance(0.5)
            for client in self.clients:
                client.go_on()
            self.check()
        assert self.state == "Stable"
        assert {each.generation for each in self.clients} == {self.generation}
        parts = [partition for each in self.clients for partition in each.part]
        assert sorted(parts) == [*range(PARTITIONS)], "not everything is read, or twice"


class Client:
    """A consumer: joins, asks for its part, beats, and begins again when it is told to."""

    def __init__(self, world: Model, name: str, instance_id: str | None) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.is_up = True
        self.is_lazy = False
        """Whether it beats, and does nothing else that it should."""
        self.topics = b"topics"
        self.start()

    def start(self) -> None:
        """Know nothing."""
        self.member_id = ""
        self.join_again()

    def join_again(self) -> None:
        self.generation = -1
        self.part = b""
        self.waits: tuple[Ticket, float] | None = None
        self.beat_at = 0.0
        self.next = self.join

    def meet_with_a_fault(self) -> None:
        match self.world.random.randrange(8):
            case 0:
                self.is_up = not self.is_up
            case 6:
                self.is_lazy = True
            case 7:
                self.wake_up()
            case 1:
                self.start()
            case 2 | 3:
                self.waits = None  # the answer is lost: it asks again
            case 4:
                self.topics = self.topics + b"."
                self.join_again()
            case 5 if self.member_id:
                identity = MemberIdentity(
                    member_id=self.member_id, group_instance_id=self.instance_id
                )
                self.ask(LeaveGroupRequest(group_id=GROUP, members=[identity]), 5)
                self.start()

    def wake_up(self) -> None:
        """Do what it should again; it does not know what it has missed."""
        if self.is_lazy:
            self.is_lazy = False
            self.start()

    def go_on(self) -> None:
        """Take an answer, or ask."""
        if not self.is_up:
            return
        world = self.world
        if self.waits is not None:
            ticket, since = self.waits
            if ticket in world.answers:
                self.waits = None
                self.take(world.answers.pop(ticket))
            elif world.monotonic - since > PATIENCE:
                raise AssertionError("a client waits for ever")
            return
        if self.generation >= 0 and self.member_id:
            world.check_commit(self.member_id, self.generation, self.instance_id)
        self.next()

    def ask(self, request: object, version: int) -> None:
        self.waits = self.world.ask(request, version, self.name), self.world.monotonic

    def join(self) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=protocols(range=self.topics),
        )
        self.ask(request, 9)

    def sync(self) -> None:
        request = SyncGroupRequest(
            group_id=GROUP, member_id=self.member_id, generation_id=self.generation
        )
        request.group_instance_id = self.instance_id
        request.assignments = self.parts
        self.ask(request, 3)

    def beat(self) -> None:
        if self.world.monotonic >= self.beat_at:
            self.beat_at = self.world.monotonic + 1.0
            request = HeartbeatRequest(
                group_id=GROUP, member_id=self.member_id, generation_id=self.generation
            )
            request.group_instance_id = self.instance_id
            self.ask(request, 4)

    def take(self, answer: object) -> None:
        code = answer.code if isinstance(answer, Refusal) else answer.error_code
        match code:
            case ErrorCode.NONE:
                self.succeed(answer)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self.start()
            case ErrorCode.NOT_COORDINATOR:
                pass  # it asks again
            case _:
                assert code in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}, code
                if not self.is_lazy or code == ErrorCode.ILLEGAL_GENERATION:
                    self.join_again()

    def succeed(self, answer: object) -> None:
        if self.next == self.join:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
            members = [each.member_id for each in answer.members]
            self.parts = [] if answer.skip_assignment else share(members)
            self.next = self.beat if self.is_lazy else self.sync
        elif self.next == self.sync:
            self.part = answer.assignment
            self.next = self.beat


def share(members: list[str]):
    """Return who gets which partitions, a byte for each."""
    return [
        SyncGroupRequestAssignment(
            member_id=member, assignment=bytes(range(number, PARTITIONS, len(members)))
        )
        for number, member in enumerate(members)
    ]


def owner(member_id: str) -> str:
    """Return who a member is: static ones are the same under every id."""
    name = member_id.partition("-")[0]
    return name if name.startswith("i") else member_id
