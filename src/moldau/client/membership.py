"""What members of both group protocols have in common: callbacks, polls, requests, leaving.

`handle(event, now)` returns what to do; nothing here waits, reads a clock or knows a connection.

The laws, which tests/unit/client/test_membership_model.py checks:
- nothing is read of a partition from the moment at which it is to be given up or was lost;
- the coordinator hears that a partition is given up after the user was told, and not before;
- a member that is not polled for long leaves, and joins again when it is polled;
- when nothing goes wrong any more, all members have what they are to have.

One callback is with the user at a time, and the answer to an old request changes nothing.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.client.errors import ClientError, KafkaError
from moldau.client.membership_events import (
    NO_PARTITIONS,
    AssignedPartitions,
    AssignmentChange,
    CallBegan,
    CalledBack,
    CallUser,
    CommitRefused,
    CountsSeen,
    FailPoll,
    FindCoordinator,
    Gone,
    MemberRules,
    MembershipEffect,
    MembershipEvent,
    MembershipTick,
    MemberSignature,
    NamesSeen,
    PollBegan,
    PollEnded,
    RequestAnswered,
    RequestLost,
    SendRequest,
    TopicsSubscribed,
    Unsubscribed,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message

JITTER: Final = 0.2
MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""The coordinator is another one, or there is none."""


class GroupMembership(ABC):
    """A member of a group, or one that is about to be."""

    def __init__(self, rules: MemberRules, chance: Callable[[], float]) -> None:
        self.rules = rules
        self.owned: AssignedPartitions = NO_PARTITIONS
        """What may be read, once the user knows."""
        self.subscription: TopicsSubscribed | None = None
        self._chance = chance
        self._now = 0.0
        self._effects: list[MembershipEffect] = []
        self._calls: deque[CallUser] = deque()
        self._calling: CallUser | None = None
        self._is_told = False
        """Whether the user is being told."""
        self._outstanding: list[Message] = []
        self._is_polled = False
        self._poll_deadline: float | None = None
        self._failure: ClientError | None = None
        self._is_leaving = False
        self._is_expired = False
        """Whether it has left because nobody polled."""
        self._backoff = rules.backoff
        self._not_before = 0.0

    # What others want to know.

    @property
    @abstractmethod
    def identity(self) -> MemberSignature | None:
        """How to sign commits; None if it is no member now."""

    @property
    def call(self) -> CallUser | None:
        """Return what the user is to be told before anything is handed out."""
        return self._calling

    @property
    def _was_polled(self) -> bool:
        """Whether the user has come for records since he subscribed."""
        return self._is_polled or self._poll_deadline is not None

    @property
    def next_time(self) -> float | None:
        """When to tell that time has passed."""
        own = None
        if self.subscription is not None and self._failure is None and not self._is_expired:
            own = self._own_time()
        times = [each for each in (self._poll_deadline, own) if each is not None]
        return min(times, default=None)

    @abstractmethod
    def _own_time(self) -> float | None:
        """Return when something is to be done by itself."""

    # What happens.

    def handle(self, event: MembershipEvent, now: float) -> list[MembershipEffect]:
        """Take what has happened; return what is to be done, in this order."""
        self._now = now
        self._effects = []
        match event:
            case TopicsSubscribed() | Unsubscribed() | PollBegan() | PollEnded():
                self._hear_user(event)
            case CallBegan():
                self._is_told = True
            case CalledBack():
                self._finish_call()
            case RequestAnswered() | RequestLost() | CountsSeen() | NamesSeen() | CommitRefused():
                self._hear_cluster(event)
            case MembershipTick():
                self._expire()
        self._go_on()
        return self._effects

    def _hear_user(self, event: TopicsSubscribed | Unsubscribed | PollBegan | PollEnded) -> None:
        match event:
            case TopicsSubscribed():
                self._failure = None
                if event != self.subscription:
                    self.subscription = event
                    self._subscription_changed()
            case Unsubscribed():
                self._unsubscribe()
            case PollBegan():
                self._begin_poll()
            case PollEnded():
                self._is_polled = False
                if self.subscription is not None and not self._is_expired:
                    self._poll_deadline = self._now + self.rules.poll_interval_max

    def _finish_call(self) -> None:
        assert self._calling is not None, "nothing was asked for"
        call, self._calling = self._calling, None
        self._is_told = False
        if call.change is not AssignmentChange.ASSIGNED:
            self.owned -= call.partitions

    def _give_all_up(self) -> None:
        """Tell the user that everything goes, and nothing that is not true any more."""
        self._calls.clear()
        if self._is_told:
            return
        call, self._calling = self._calling, None
        if call is not None and call.change is AssignmentChange.ASSIGNED:
            self.owned -= call.partitions
        due = CallUser(
            AssignmentChange.REVOKED if self.identity else AssignmentChange.LOST, self.owned
        )
        if call == due:
            self._calling = call
        else:
            self._call(due.change, due.partitions)

    def _hear_cluster(
        self, event: RequestAnswered | RequestLost | CountsSeen | NamesSeen | CommitRefused
    ) -> None:
        match event:
            case RequestAnswered(request, answer):
                if self._take(request):
                    self._answered(request, answer)
            case RequestLost(request, error):
                if not self._take(request):
                    pass
                elif isinstance(error, KafkaError) and not error.retriable:
                    self._fail(error)
                else:
                    self._effects.append(FindCoordinator())
                    self._lost(request)
            case CountsSeen() | NamesSeen():
                self._found(event)
            case CommitRefused():
                if event.identity == self.identity:
                    self._refused(event)

    def _unsubscribe(self) -> None:
        if self.subscription is None:
            self._effects.append(Gone())
        else:
            self._is_leaving = True
            self._calls.clear()
            self._outstanding.clear()

    def _begin_poll(self) -> None:
        self._is_polled = True
        self._poll_deadline = None
        failure = self._failure
        if isinstance(failure, KafkaError) and failure.code is ErrorCode.FENCED_INSTANCE_ID:
            # To join again would fence the one who has taken over.
            self._effects.append(FailPoll(failure))
        else:
            self._failure = None
        self._is_expired = False

    def _expire(self) -> None:
        deadline = self._poll_deadline
        if deadline is None or self._now < deadline:
            return
        self._poll_deadline = None
        if self.subscription is None or self._is_leaving:
            return
        self._is_expired = True
        farewell = self._farewell()
        if farewell is not None:
            self._effects.append(SendRequest(farewell))
        self._reset()

    def _go_on(self) -> None:
        if self.identity is None or self._is_leaving:
            self._give_all_up()
        self._call_next()
        if self._calling is not None:
            self._beat()
        elif self._is_leaving:
            self._leave()
        elif self.subscription is not None and self._failure is None and not self._is_expired:
            self._advance()

    def _leave(self) -> None:
        self._effects.append(Gone(self._farewell()))
        self._is_leaving = False
        self._is_expired = False
        self._is_polled = False
        self.subscription = None
        self._poll_deadline = None
        self._reset()

    # For those who know the protocol.

    @abstractmethod
    def _subscription_changed(self) -> None:
        """Tell the group what is wanted now."""

    @abstractmethod
    def _answered(self, request: Message, answer: Message) -> None:
        """Take an answer that was waited for."""

    @abstractmethod
    def _lost(self, request: Message) -> None:
        """A request's answer will not come."""

    @abstractmethod
    def _refused(self, event: CommitRefused) -> None:
        """A commit in this member's name was refused."""

    @abstractmethod
    def _found(self, event: CountsSeen | NamesSeen) -> None:
        """Take what was found out about topics."""

    @abstractmethod
    def _advance(self) -> None:
        """Do what is next; no callback is with the user."""

    @abstractmethod
    def _beat(self) -> None:
        """Send a heartbeat if it is time, whatever else is going on."""

    @abstractmethod
    def _farewell(self) -> Message | None:
        """Return how to leave, None if there is nothing to leave."""

    def _reset(self) -> None:
        """Be no member any more; what is owned is lost unless it was given up."""
        self._outstanding.clear()
        self._calls.clear()
        self._succeed()

    def _call_next(self) -> None:
        while self._calling is None and self._calls:
            call = self._calls.popleft()
            self._call(call.change, call.partitions)

    def _call(self, change: AssignmentChange, partitions: AssignedPartitions) -> None:
        if change is AssignmentChange.ASSIGNED:
            self.owned |= partitions
        elif not partitions:
            return
        self._calling = CallUser(change, partitions)
        self._effects.append(self._calling)

    def _send(self, request: Message) -> None:
        self._outstanding.append(request)
        self._effects.append(SendRequest(request))

    def _take(self, request: Message) -> bool:
        for place, each in enumerate(self._outstanding):
            if each is request:
                del self._outstanding[place]
                return True
        return False

    def _awaits(self, kind: type[Message]) -> bool:
        return any(isinstance(each, kind) for each in self._outstanding)

    def _fail(self, error: ClientError) -> None:
        self._failure = error
        self._effects.append(FailPoll(error))
        self._reset()

    def _wait(self) -> None:
        """Try again after a while, each time after a longer one."""
        jitter = 1 - JITTER + 2 * JITTER * self._chance()
        self._not_before = self._now + self._backoff * jitter
        self._backoff = min(self._backoff * 2, self.rules.backoff_max)

    def _succeed(self) -> None:
        self._backoff = self.rules.backoff
        self._not_before = 0.0
