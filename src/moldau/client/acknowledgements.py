"""What a share consumer holds: records it was given, and what it has said of each."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.client.errors import AcknowledgementError
from moldau.kernel.ids import TopicPartition


class AcknowledgeType(IntEnum):
    """What becomes of a record that was acquired, with Kafka's numbers."""

    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """Somebody may try it again."""
    REJECT = 3
    """It cannot be processed: nobody is to try it again."""
    RENEW = 4
    """It takes longer: hold it for another lock's time."""


GAP = 0
"""An offset that was acquired and has no record, as where a marker was or compaction has been."""


class AckBatch(NamedTuple):
    """The same, or one after the other, said of a run of offsets."""

    first: int
    last: int
    types: Sequence[int]


class Acks(NamedTuple):
    """What is said of one partition in one request."""

    batches: Sequence[AckBatch]
    offsets: Sequence[int]
    """The records among them, without gaps."""
    has_renewals: bool


class HeldRecords:
    """What one broker gave of one partition and nobody has settled yet."""

    def __init__(self) -> None:
        self._unsaid: set[int] = set()  # handed out; nothing was said of them
        self._renewing: set[int] = set()  # held for longer
        self._said: dict[int, int] = {}  # waits to be sent
        self._lost: set[int] = set()  # handed out in a session that has ended
        self._in_vain: list[int] = []  # said of those: it cannot be sent

    @property
    def has_unsaid(self) -> bool:
        """Whether a record that was handed out is not acknowledged."""
        return bool(self._unsaid)

    @property
    def has_said(self) -> bool:
        """Whether something is to be sent, or to be reported."""
        return bool(self._said or self._in_vain)

    def hand_out(self, offset: int) -> None:
        """A user has a record now."""
        self._unsaid.add(offset)
        self._lost.discard(offset)

    def skip(self, offsets: Iterable[int]) -> None:
        """There are no records at these offsets."""
        self._said |= dict.fromkeys(offsets, GAP)

    def say(self, offset: int, kind: AcknowledgeType) -> None:
        """Take what a user says; until it is sent, that can be changed."""
        if offset in self._lost:
            # Its user cannot know: that it comes again is told when the others are.
            self._lost.discard(offset)
            self._in_vain.append(offset)
            return
        is_open = offset in self._unsaid or offset in self._renewing
        if not is_open and self._said.get(offset, GAP) == GAP:
            raise AcknowledgementError(
                f"offset {offset} is not held: it was not in the last poll, or is acknowledged"
            )
        self._unsaid.discard(offset)
        self._renewing.discard(offset)
        self._said[offset] = kind

    def accept_all(self) -> None:
        """Accept whatever nothing was said of."""
        self._said |= dict.fromkeys(self._unsaid, AcknowledgeType.ACCEPT)
        self._unsaid.clear()
        self._in_vain += sorted(self._lost)
        self._lost.clear()

    def take(self) -> Acks:
        """Return what is to be sent, and hold it no more; only what is renewed stays."""
        said, self._said = self._said, {}
        renewed = {offset for offset, kind in said.items() if kind == AcknowledgeType.RENEW}
        self._renewing |= renewed
        offsets = sorted(offset for offset, kind in said.items() if kind != GAP)
        return Acks(_batches(said), offsets, bool(renewed))

    def take_in_vain(self) -> list[int]:
        """Return the offsets whose acknowledgements cannot be sent."""
        offsets, self._in_vain = self._in_vain, []
        return offsets

    def lose(self) -> None:
        """Hold nothing any more: the broker has given it to others, or will."""
        self._lost |= self._unsaid | self._renewing
        self._in_vain += sorted(offset for offset, kind in self._said.items() if kind != GAP)
        self._unsaid.clear()
        self._renewing.clear()
        self._said.clear()


def _batches(said: Mapping[int, int]) -> list[AckBatch]:
    """Put neighbours together; a run with one kind of answer names it once."""
    runs: list[list[int]] = []
    for offset in sorted(said):
        if runs and runs[-1][-1] + 1 == offset:
            runs[-1].append(offset)
        else:
            runs.append([offset])
    batches = []
    for run in runs:
        types = [said[offset] for offset in run]
        same = len(set(types)) == 1
        batches.append(AckBatch(run[0], run[-1], types[:1] if same else types))
    return batches


class Acknowledged(NamedTuple):
    """What was sent for a partition, and whether the broker has taken it."""

    partition: TopicPartition
    offsets: Sequence[int]
    error: Exception | None
