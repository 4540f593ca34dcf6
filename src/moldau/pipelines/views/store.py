"""Rows by key, and how far each partition was read, in one file and in the same transactions."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.views.key_shape import KeyShape, Spot
from moldau.pipelines.views.store_file import Say, StoreFile, close_quietly, is_damage

_PUT: Final = (
    "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (key, start_us, end_us, partition) DO UPDATE"
    " SET offset = excluded.offset, timestamp_ms = excluded.timestamp_ms, value = excluded.value,"
    " deleted_ms = excluded.deleted_ms"
)
_MOVE: Final = (
    "INSERT INTO positions VALUES (?, ?)"
    " ON CONFLICT (partition) DO UPDATE SET offset = excluded.offset"
)
_COLUMNS: Final = "key, start_us, end_us, partition, offset, timestamp_ms, value"
_ORDER: Final = "ORDER BY key, start_us, end_us"

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


class Keyed(Protocol):
    """What the store wants of a record."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


class Stored(NamedTuple):
    """A row of the file: the last record that one partition has of a key."""

    key: bytes
    start_us: int
    end_us: int
    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    """None for a tombstone."""

    @property
    def spot(self) -> Spot:
        """Where it is found."""
        return Spot(*self[:3])


class FoundRows(NamedTuple):
    """Rows of one moment, and how far each partition was read then."""

    rows: list[Stored]
    positions: dict[int, int]


class Store:
    """What is known of one topic's rows; one thread writes, any may read.

    The last record of a key is kept for each partition that has one, tombstones included, so that
    the order in which partitions are read does not matter: the one with the latest time counts, as
    in `LatestRecord`; of equal times, that of the partition that was added later.
    """

    def __init__(self, folder: Path, topic: str, shape: KeyShape, say: Say) -> None:
        self.shape = shape
        self._topic = topic
        self._file = StoreFile(folder, topic, shape.text, say)
        self._reading = Lock()
        self.damage: str | None = None
        """What a reader has found: `rebuild` before anything else is written."""
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        self._writer = self._file.open()
        self._reader = self._file.open_reader()
        self.positions = _read_positions(self._writer)
        """How far each partition was read: every record before is in the rows."""

    def close(self) -> None:
        """Close the file, and let others have it."""
        with self._reading:
            close_quietly(self._reader)
            close_quietly(self._writer)
            self._file.close()

    def rebuild(self) -> None:
        """Set the damaged file aside, and begin with an empty one."""
        with self._reading:
            close_quietly(self._reader)
            close_quietly(self._writer)
            self._file.set_aside(self.damage or "it cannot be read")
            self._open()
            self.damage = None

    # Writing.

    def adopt(self, topic_id: bytes) -> bool:
        """Say which topic of the name is read; False if the rows were another one's, and went."""
        (known,) = self._writer.execute("SELECT topic_id FROM identity").fetchone()
        if known == topic_id:
            return True
        with self._writing():
            self._writer.execute("DELETE FROM rows")
            self._writer.execute("DELETE FROM positions")
            self._writer.execute("UPDATE identity SET topic_id = ?", (topic_id,))
        return known is None

    def apply(self, records: Iterable[Keyed], positions: Mapping[int, int], *, now_ms: int) -> int:
        """Take records, and the positions behind them, all or nothing.

        Returns how many were skipped because their keys are not of the table's columns; records
        without a key are of no row.
        """
        rows: dict[tuple[bytes, int, int, int], Keyed] = {}
        skipped = 0
        find = self.shape.find_spot
        # Those of a partition come in order, so that the last one of a key stays.
        for each in records:
            key = each.key
            if key is None:
                continue
            spot = (key, 0, 0) if self.shape.takes_all else find(key)
            if spot is None:
                skipped += 1
            else:
                rows[*spot, each.partition] = each
        # In the index's order, so that a page is written once.
        ordered = [
            (
                *place,
                each.offset,
                each.timestamp_ms,
                each.value,
                now_ms if each.value is None else None,
            )
            for place, each in sorted(rows.items(), key=itemgetter(0))
        ]
        with self._writing():
            self._writer.executemany(_PUT, ordered)
            self._writer.executemany(_MOVE, positions.items())
        return skipped

    def forget(self, partitions: Sequence[int]) -> None:
        """Have everything of these partitions gone, positions included."""
        one_each = [(each,) for each in partitions]
        with self._writing():
            self._writer.executemany("DELETE FROM rows WHERE partition = ?", one_each)
            self._writer.executemany("DELETE FROM positions WHERE partition = ?", one_each)

    def sweep(self, *, before_ms: int, count_max: int) -> int:
        """Have tombstones gone that came before a time, with what they delete; return how many.

        Only when everything was read: what they delete may otherwise still come.
        """
        old = self._writer.execute(
            f"SELECT {_COLUMNS} FROM rows WHERE deleted_ms < ? ORDER BY deleted_ms LIMIT ?",
            (before_ms, count_max),
        ).fetchall()
        if not old:
            return 0
        with self._writing():
            for each in map(Stored._make, old):
                # With a later row in another partition, only the tombstone goes.
                self._writer.execute(
                    "DELETE FROM rows WHERE key = ? AND start_us = ? AND end_us = ?"
                    " AND (timestamp_ms, partition) <= (?, ?)",
                    (*each.spot, each.timestamp_ms, each.partition),
                )
        return len(old)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            _end(self._writer)
            raise
        self.positions = _read_positions(self._writer)

    # Reading.

    def find(
        self, key: bytes, *, start_us: int = INT64_MIN, until_us: int = INT64_MAX
    ) -> FoundRows:
        """Return the rows of a key whose windows begin in a range, latest records only."""
        words = f"SELECT {_COLUMNS} FROM rows WHERE key = ? AND start_us >= ? AND start_us < ?"
        with self._reading, self._snapshot(self._reader):
            found = self._reader.execute(f"{words} {_ORDER}", (key, start_us, until_us))
            return FoundRows(list(_latest(found)), _read_positions(self._reader))

    def scan(self, limit: int) -> FoundRows:
        """Return the first rows by key."""
        # With a connection of its own: who asks for a key does not wait for it.
        with self._reading:
            reader = self._file.open_reader()
        try:
            with self._snapshot(reader):
                found = reader.execute(f"SELECT {_COLUMNS} FROM rows {_ORDER}")
                return FoundRows(list(islice(_latest(found), limit)), _read_positions(reader))
        finally:
            close_quietly(reader)

    @contextmanager
    def _snapshot(self, reader: sqlite3.Connection) -> Iterator[None]:
        """Have all that is read be of one moment."""
        try:
            reader.execute("BEGIN")
            yield
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.damage = str(error)
            raise PipelineError(
                f"view of topic {self._topic}: its file is damaged, and will be built anew"
            ) from error
        finally:
            _end(reader)


def _end(connection: sqlite3.Connection) -> None:
    """Give up a transaction; what went wrong in it is the news, not that it cannot be ended."""
    if connection.in_transaction:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _read_positions(connection: sqlite3.Connection) -> dict[int, int]:
    return dict(connection.execute("SELECT partition, offset FROM positions").fetchall())


def _latest(found: Iterable[tuple[object, ...]]) -> Iterator[Stored]:
    """Yield the latest row of each key that is not deleted; they come in the order of keys."""
    stored = (Stored._make(each) for each in found)
    for _, rows in groupby(stored, key=lambda each: each[:3]):
        latest = max(rows, key=lambda each: (each.timestamp_ms, each.partition))
        if latest.value is not None:
            yield latest
