"""What a producer has not delivered: who waits for it, and what is said when that is in vain."""

import asyncio
import warnings
from collections import Counter
from collections.abc import Sequence

from moldau._native.accumulator import PendingBatch
from moldau.client.errors import UndeliveredWarning


class Flush:
    """Somebody who waits until batches up to some number are done."""

    def __init__(self, last: int, unfinished: int, done: "asyncio.Future[None]") -> None:
        self.last = last
        self.unfinished = unfinished
        self.done = done

    def count(self, number: int, change: int) -> None:
        """Take notice of a batch that is done (-1), or has become several."""
        if number <= self.last:
            self.unfinished += change
            if not self.unfinished:
                self.end()

    def end(self) -> None:
        """Let go who waits."""
        if not self.done.done():
            self.done.set_result(None)


def warn_undelivered(batches: Sequence[PendingBatch], why: Exception | None = None) -> None:
    """Say what a producer had not delivered."""
    topics = Counter[str]()
    for batch in batches:
        topics[batch.topic] += batch.record_count
    if topics:
        named = ", ".join(f"{count} for {topic}" for topic, count in topics.most_common())
        reason = f": {why}" if why else ""
        text = f"{topics.total()} records were not delivered ({named}){reason}"
        warnings.warn(text, UndeliveredWarning, stacklevel=2)
