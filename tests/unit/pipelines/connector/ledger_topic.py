"""A compacted topic in which transactions write, with all that may become of it between reads."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from moldau.client.committed_fetch import FetchedTail, FetchPlace, LostPlaceError
from moldau.client.errors import KafkaError
from moldau.pipelines.connector.sink.ledger_copy import LedgerCopy
from moldau.protocol.errors import ErrorCode

DAY = 86_400.0
"""After which compaction takes tombstones away."""


@dataclass(eq=False)
class Batch:
    """What one transaction has written, or its marker: then the key is None."""

    offset: int
    key: str | None
    value: bytes | None
    state: str = "open"
    written_at: float = 0.0
    ended_at: int = -1
    """The offset of its marker."""


@dataclass
class LedgerTopic:
    """The log of the only partition, and what a leader answers of it."""

    chance: random.Random
    now: float = 0.0
    topic_id: bytes = b"1" * 16
    epoch: int = 0
    log_start: int = 0
    log_end: int = 0
    batches: list[Batch] = field(default_factory=list)

    # What happens.

    def write(self, key: str, value: bytes | None) -> Batch:
        """Write a record, in a transaction that is open."""
        batch = Batch(self.log_end, key, value)
        self.batches.append(batch)
        self.log_end += 1
        return batch

    def end(self, batch: Batch, *, is_commit: bool) -> None:
        """Write a transaction's marker."""
        batch.state = "committed" if is_commit else "aborted"
        batch.ended_at = self.log_end
        batch.written_at = self.now
        self.batches.append(Batch(self.log_end, None, None, "marker"))
        self.log_end += 1

    def end_all(self) -> None:
        """End what is open, as the transactions' owners or their timeouts do."""
        for each in [each for each in self.batches if each.state == "open"]:
            self.end(each, is_commit=self.chance.random() < 0.7)

    def compact(self) -> None:
        """Take away what something newer stands for, before the stable offset."""
        edge = self.stable_offset
        # The segment that is written to is left as it is, so the last batch stays.
        cleanable = [each for each in self.batches[:-1] if each.offset < edge]
        newest = {each.key: each for each in cleanable if each.state == "committed"}
        gone = {
            id(each)
            for each in cleanable
            if each.state in ("aborted", "marker")
            or newest[each.key] is not each
            or (each.value is None and self.now - each.written_at > DAY)
        }
        self.batches = [each for each in self.batches if id(each) not in gone]

    def delete_records(self) -> None:
        """Let the log begin later."""
        self.log_start = self.chance.randint(self.log_start, self.stable_offset)
        self.batches = [each for each in self.batches if each.offset >= self.log_start]

    def create_anew(self) -> None:
        """Be another topic of the same name."""
        self.topic_id = self.chance.randbytes(16)
        self.epoch = self.log_start = self.log_end = 0
        self.batches.clear()

    def cut(self) -> None:
        """Lose the newest, as by a leader that did not have them."""
        self.epoch += 1
        self.log_end = self.chance.randint(self.log_start, self.log_end)
        self.batches = [each for each in self.batches if each.offset < self.log_end]
        for each in self.batches:
            if each.ended_at >= self.log_end:
                each.state, each.ended_at = "open", -1
        self.end_all()

    # What a leader says.

    @property
    def stable_offset(self) -> int:
        """The first offset of a transaction that is open."""
        found = [each.offset for each in self.batches if each.state == "open"]
        return min(found, default=self.log_end)

    def fetch(self, place: FetchPlace | None, batches_max: int) -> FetchedTail:
        """Answer a Fetch; without a place it is at the beginning."""
        place = place or FetchPlace(self.topic_id, self.epoch, self.log_start)
        if place.topic_id != self.topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if place.leader_epoch != self.epoch:
            raise LostPlaceError(ErrorCode.FENCED_LEADER_EPOCH)
        if not self.log_start <= place.offset <= self.log_end:
            raise LostPlaceError(ErrorCode.OFFSET_OUT_OF_RANGE)
        found = [each for each in self.batches if place.offset <= each.offset < self.stable_offset][
            :batches_max
        ]
        return FetchedTail(
            [_record(each) for each in found if each.state == "committed"],
            replace(place, offset=found[-1].offset + 1) if found else place,
            not found,
            self.log_start,
            self.stable_offset,
            self.log_end,
        )

    def says(self, end: int) -> dict[str, bytes]:
        """Return what a reader says that has read from the beginning to an offset."""
        newest: dict[str, bytes] = {}
        for each in self.batches:
            if each.offset < end and each.state == "committed" and each.key is not None:
                if each.value is None:
                    newest.pop(each.key, None)
                else:
                    newest[each.key] = each.value
        return newest

    def read(self, copy: LedgerCopy, *, waits: bool, between: Callable[[], None]) -> None:
        """Read on as a client does; `between` happens after each answer but the last."""
        for _ in range(100):
            reading = copy.read_on(lambda: self.now, waits=waits)
            try:
                place = next(reading)
                while True:
                    tail = self.fetch(place, self.chance.choice([1, 2, 100]))
                    place = reading.send(tail)
                    if tail.is_empty:
                        self.end_all()
                    between()
            except StopIteration:
                return
            except KafkaError:
                reading.close()
        raise AssertionError("it does not come to an end")


def _record(batch: Batch) -> Any:
    assert batch.key is not None
    return SimpleNamespace(
        key=batch.key.encode(), value=batch.value, offset=batch.offset, timestamp_ms=0
    )
