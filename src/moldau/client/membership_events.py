"""What a group's member is told, and what it wants done."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from moldau.client.assignors import ClientAssignor
from moldau.client.errors import ClientError, KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.schema import Message

AssignedPartitions = frozenset[TopicPartition]
NO_PARTITIONS: Final[AssignedPartitions] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRules:
    """What a member was told when it was made; times are in seconds."""

    group_id: str
    instance_id: str | None = None
    """A static member's name: who restarts with it is the same member."""
    rack: str | None = None
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    poll_interval_max: float = 300.0
    backoff: float = 0.1
    backoff_max: float = 1.0
    assignors: tuple[ClientAssignor, ...] = ()
    """Of the classic protocol."""
    remote_assignor: str | None = None
    """The broker's, in the consumer protocol."""


@dataclass(frozen=True, slots=True)
class MemberSignature:
    """How a member signs its commits."""

    member_id: str
    epoch: int
    """The generation in the classic protocol, the member's epoch in the consumer protocol."""


# Events.


@dataclass(frozen=True, slots=True)
class TopicsSubscribed:
    """The user wants these topics, or the topics of a pattern are these by now."""

    topics: frozenset[str]
    regex: str | None = None
    """For the broker to evaluate."""


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """The user wants to leave the group."""


@dataclass(frozen=True, slots=True)
class PollBegan:
    """The user is here, and waits for records."""


@dataclass(frozen=True, slots=True)
class PollEnded:
    """The user does something else now."""


@dataclass(frozen=True, slots=True)
class CallBegan:
    """The user is being told what `call` says: it does not change any more."""


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What was asked for with the last `CallUser` is done."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestAnswered:
    """The coordinator's answer to a request."""

    request: Message
    answer: Message


@dataclass(frozen=True, slots=True, eq=False)
class RequestLost:
    """A request may have arrived or not: nobody knows."""

    request: Message
    error: ClientError


@dataclass(frozen=True, slots=True)
class CountsSeen:
    """How many partitions the topics have that were asked for; who is not there is left out."""

    asked: frozenset[str]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NamesSeen:
    """The names of topics, by their ids, as far as they are known."""

    names: Mapping[bytes, str]


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """A commit was refused: the member is not who it thinks, or is to join again."""

    error: KafkaError
    identity: MemberSignature


@dataclass(frozen=True, slots=True)
class MembershipTick:
    """Time has passed."""


MembershipEvent = (
    TopicsSubscribed
    | Unsubscribed
    | PollBegan
    | PollEnded
    | CallBegan
    | CalledBack
    | RequestAnswered
    | RequestLost
    | CountsSeen
    | NamesSeen
    | CommitRefused
    | MembershipTick
)


# Effects.


class AssignmentChange(Enum):
    """What happens to partitions."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    """They are to be given up in order: what was read of them can be committed."""
    LOST = "lost"
    """They may have another reader already."""


@dataclass(frozen=True, slots=True)
class CallUser:
    """Begin or stop to read partitions, tell the user, and say when that begins and is done.

    Until it begins it may be taken back: the member's `call` is what counts.
    """

    change: AssignmentChange
    partitions: AssignedPartitions


@dataclass(frozen=True, slots=True, eq=False)
class SendRequest:
    """Ask the coordinator."""

    request: Message


@dataclass(frozen=True, slots=True)
class FindCounts:
    """Find out how many partitions topics have."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class FindNames:
    """Find out how topics are called."""

    topic_ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Look the coordinator up again before the next request."""


@dataclass(frozen=True, slots=True)
class FailPoll:
    """Tell the user in the next poll."""

    error: ClientError


@dataclass(frozen=True, slots=True)
class Gone:
    """The member has left, as it was asked to: send the farewell, whose answer changes nothing."""

    farewell: Message | None = None


MembershipEffect = (
    CallUser | SendRequest | FindCounts | FindNames | FindCoordinator | FailPoll | Gone
)
