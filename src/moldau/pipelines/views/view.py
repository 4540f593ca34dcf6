"""A view: a table's latest rows, kept at hand and asked by key."""

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from moldau.pipelines.streams.key_bytes import partition_of
from moldau.pipelines.views.answers import KeyedRow, ViewAnswer, ViewAnswers, ViewProgress
from moldau.pipelines.views.follower import Follower
from moldau.pipelines.views.key_shape import KeyShape, to_us
from moldau.pipelines.views.store import INT64_MAX, INT64_MIN, FoundRows, Store, Stored
from moldau.pipelines.views.store_file import Say


def say_on_stderr(words: str) -> None:
    """Tell whoever has started the process."""
    print(words, file=sys.stderr, flush=True)  # noqa: T201 - somebody must hear of it


class View:
    """Follows a topic into a file, and answers from it.

        config = {"bootstrap.servers": "localhost:9092"}
        with View("users", {"user": "string"}, Path("views/users"), config) as view:
            view.wait_until_caught_up(60)
            view.get("ann").row

    `key` has the key's columns, with types as Spark's DDL writes them; one that is called `window`
    and has `start` and `end` makes the table windowed. `config` is what every client is told, by
    Kafka's names. The folder is the view's own: what is in it survives restarts, crashes included,
    and is built anew when the topic is another one. `say` hears what an operator should know, in
    the thread of the view or in that which opens it.

    Rows that a topic has lost by `retention.ms` stay, as in Kafka Streams: tombstones delete.
    """

    def __init__(
        self,
        topic: str,
        key: Mapping[str, str],
        folder: Path,
        config: Mapping[str, object],
        *,
        say: Say = say_on_stderr,
    ) -> None:
        self.topic = topic
        self.shape = KeyShape(key)
        self._is_closed = False
        self._store = Store(folder, topic, self.shape, say)
        self._follower = Follower(self._store, topic, config, say)

    def start(self) -> Self:
        """Begin to follow; `with` does. What is in the file can be asked before."""
        self._follower.start()
        return self

    def close(self) -> None:
        """Stop following, and close the file; `with` does."""
        if self._is_closed:
            return
        self._is_closed = True
        self._follower.stop()
        self._store.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_until_caught_up(self, timeout_seconds: float) -> bool:
        """Wait until all that can be read now is in the view; False if it takes too long."""
        return self._follower.wait_until_caught_up(timeout_seconds)

    @property
    def progress(self) -> ViewProgress:
        """How far the view has come, and what is in its way."""
        return self._follower.progress()

    # Questions.

    def get(self, key: object) -> ViewAnswer:
        """Return a key's row.

        A key of several columns is a tuple or a dict; of a windowed table, `window` is among them,
        as a dict of `start` and `end`.
        """
        spot, written = self.shape.encode(key)
        # A window may begin at the same time as others: sessions that grow do.
        found = self._store.find(spot.key, start_us=spot.start_us, until_us=spot.start_us + 1)
        stored = next((each for each in found.rows if each.end_us == spot.end_us), None)
        if stored is None:
            count = self._follower.ends.partition_count or len(found.positions)
            partition = partition_of(written, count) if count else None
        else:
            partition = stored.partition
        return ViewAnswer(
            None if stored is None else self._row(stored),
            partition,
            0 if partition is None else found.positions.get(partition, 0),
            self._follower.has_caught_up(found.positions),
        )

    def get_range(
        self, key: object, start: datetime | str | None = None, until: datetime | str | None = None
    ) -> ViewAnswers:
        """Return the rows of a windowed table's key whose windows begin in a range.

        `start` is in it, `until` is not; without them there is no bound. `key` is without the
        window: a tuple or a dict of the other columns, or the only one's value.
        """
        found = self._store.find(
            self.shape.encode_rest(key),
            start_us=INT64_MIN if start is None else to_us(start),
            until_us=INT64_MAX if until is None else to_us(until),
        )
        return self._answers(found)

    def scan(self, limit: int) -> ViewAnswers:
        """Return the first rows, in the order of their keys' bytes."""
        return self._answers(self._store.scan(limit))

    def _answers(self, found: FoundRows) -> ViewAnswers:
        caught_up = self._follower.has_caught_up(found.positions)
        return ViewAnswers([self._row(each) for each in found.rows], found.positions, caught_up)

    def _row(self, stored: Stored) -> KeyedRow:
        assert stored.value is not None, "tombstones are no rows"
        key: dict[str, Any] = self.shape.decode(stored.spot)
        return KeyedRow(key, stored.value, stored.partition, stored.offset, stored.timestamp_ms)
