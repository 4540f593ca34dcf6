"""A process' copy of the ledgers' topic, which is read on where it ends.

The law, which tests/unit/pipelines/connector/test_ledger_copy.py checks: when it has read to an
offset, it says what a reader says that has read the topic from its beginning to there. So it may be
behind, as any reader may be, and it never says anything else. That rests on these:
- It is of one topic, by its id, and of one leader, by its epoch: both are compared with every
  Fetch, and if they are others, everything is forgotten. A leader's own log only grows.
- What is before the log's start is not in the topic.
- Compaction takes away what something newer stands for, and tombstones, a day later by default. A
  copy that was not read for a while may have missed one, so it is not read on.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

from moldau.client.committed_fetch import FetchedTail, FetchPlace
from moldau.protocol.schema import ZERO_UUID

AGE_SECONDS_MAX: Final = 600.0


@dataclass(frozen=True, slots=True)
class CopiedLedger:
    """The newest record of a key."""

    offset: int
    written_ms: int
    value: bytes


class LedgerCopy:
    """The newest record of each key, and the place behind the last that was read."""

    def __init__(self) -> None:
        self.ledgers: dict[str, CopiedLedger] = {}
        self.checked_at = -math.inf
        """When the topic was last seen to be one that keeps what it is told."""
        self._place: FetchPlace | None = None
        self._read_at = -math.inf

    def read_on(
        self, now: Callable[[], float], *, waits: bool
    ) -> Generator[FetchPlace | None, FetchedTail, None]:
        """Ask for what comes at a place, None at the beginning, up to the end of the first answer.

        That is the end of what is committed, or with `waits` that of the log: then an answer may be
        empty because of an open transaction, and the same is asked for again.
        """
        is_known = self._place is not None and self._place.topic_id != ZERO_UUID
        if not is_known or now() - self._read_at > AGE_SECONDS_MAX:
            self._forget()
        end: int | None = None
        try:
            while True:
                tail = yield self._place
                self._take(tail)
                self._read_at = now()
                if end is None:
                    end = tail.high_watermark if waits else tail.stable_offset
                # Compaction may have left nothing before the end.
                if tail.following.offset >= end or (tail.is_empty and tail.stable_offset >= end):
                    return
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self._place = None
        self.ledgers.clear()
        self.checked_at = -math.inf

    def _take(self, tail: FetchedTail) -> None:
        for name in [name for name, each in self.ledgers.items() if each.offset < tail.log_start]:
            del self.ledgers[name]
        for record in tail.records:
            name = (record.key or b"").decode()
            if record.value is None:
                self.ledgers.pop(name, None)
            else:
                self.ledgers[name] = CopiedLedger(
                    record.offset, record.timestamp_ms, bytes(record.value)
                )
        self._place = tail.following
