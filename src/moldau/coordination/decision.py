"""What a coordinator decides: records to append, an answer and effects for when they are safe."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Never

from moldau.coordination.command import Answer, OwnAnswer, Ticket
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord


class Effect:
    """Something to do beside recording; a coordinator may have some of its own kind."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reply(Effect, Generic[OwnAnswer]):
    """Answer an earlier command whose caller waits."""

    ticket: Ticket[OwnAnswer]
    response: OwnAnswer | Refusal


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Have `expire` called with this key at a (monotonic) time; the last one set counts."""

    key: Hashable
    at: float


@dataclass(frozen=True, slots=True)
class CancelTimer(Effect):
    """Do not have `expire` called with this key."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer]):
    """Records that take effect together, and what to do and say once they are committed.

    Timers are set at once; all other effects wait for the commit, as the response does. Without
    records the response waits for the commit of what was recorded before: no client is told of
    something that may still be lost.
    """

    records: Sequence[StoredRecord] = ()
    response: Answer | Refusal | None = None
    """None: the caller waits for a `Reply`, or there is no caller."""
    effects: Sequence[Effect] = ()
    producer: ProducerIdentity | None = None
    """The records are part of this producer's transaction."""
    is_atomic: bool = True
    """Whether the records have to be in one batch; others may be cut where it grows too large."""
    is_pure: bool = False
    """Whether nothing but the records changes anything that matters without them. If the log does
    not take them (too large, or of a producer that is fenced), only the caller hears of it."""

    def answered(self: "Decision[Never]", response: OwnAnswer) -> "Decision[OwnAnswer]":
        """Return a decision that was made without a caller, with an answer to one."""
        decided: Decision[Any] = self
        return replace(decided, response=response)


UnaskedDecision = Decision[Never]
"""What no command asks for: it follows from a timer, or from the end of a replay."""
