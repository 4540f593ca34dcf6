"""What the controller decides: records to append, the answer for when they are committed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeAlias

from moldau.coordination.command import Answer
from moldau.protocol.schema import Message

Records: TypeAlias = list[Message]


@dataclass(frozen=True, slots=True)
class RaiseKraftVersion:
    """Ask the quorum to write its voters into the log from now on (KIP-853)."""

    level: int


@dataclass(frozen=True, slots=True)
class MetadataDecision(Generic[Answer]):
    """Records that take effect together, and what to tell the caller once they are committed.

    Where there may be very many records they are made while they are walked, once, so that a large
    decision is encoded and appended over several turns of the loop (`metadata.batches`). Until it
    is through, no other command is decided.
    """

    records: Iterable[Message]
    response: Answer
    effects: tuple[RaiseKraftVersion, ...] = ()
