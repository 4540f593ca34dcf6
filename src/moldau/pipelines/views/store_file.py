"""The file that a view keeps its rows in: opened if it is sound and the view's, else made anew."""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from moldau.pipelines.errors import PipelineError

FILE: Final = "view.sqlite"
LOCK: Final = "view.lock"
DAMAGED: Final = ".damaged"
VERSION: Final = 1
"""Of the tables below: a file with another one is made anew."""
WRITER_CACHE_BYTES: Final = 64 << 20
"""Holds the index of about a million keys: without it, every batch of a load would read again."""
READER_CACHE_BYTES: Final = 8 << 20
WAL_BYTES_MAX: Final = 64 << 20
"""What the write-ahead log keeps on the disk after a large transaction."""

_TABLES: Final = (
    # The values lie in the order in which they came, and only the small index is in disorder:
    # with the values in the index, a load of random keys takes half as long again.
    """CREATE TABLE rows (
        key BLOB NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL,
        partition INTEGER NOT NULL, offset INTEGER NOT NULL, timestamp_ms INTEGER NOT NULL,
        value BLOB, deleted_ms INTEGER)""",
    "CREATE UNIQUE INDEX by_key ON rows (key, start_us, end_us, partition)",
    "CREATE INDEX tombstones ON rows (deleted_ms) WHERE deleted_ms IS NOT NULL",
    "CREATE TABLE positions (partition INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
    "CREATE TABLE identity (topic TEXT NOT NULL, keys TEXT NOT NULL, topic_id BLOB)",
)

Say = Callable[[str], None]


class StoreFile:
    """One view's file in a folder, held by one process at a time."""

    def __init__(self, folder: Path, topic: str, keys: str, say: Say) -> None:
        self.path = folder / FILE
        self._topic = topic
        self._keys = keys
        self._say = say
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise PipelineError(
                f"view of topic {topic}: another one is in {folder}; stop it, or take another "
                f"folder"
            ) from None

    def close(self) -> None:
        """Let others have the folder."""
        os.close(self._lock)

    def open(self) -> sqlite3.Connection:
        """Return a connection that writes."""
        try:
            connection = self._connect(WRITER_CACHE_BYTES)
            try:
                reason = self._why_not(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.set_aside(str(error))
            connection = self._connect(WRITER_CACHE_BYTES)
            reason = "new"
        if reason is None:
            return connection
        if reason != "new":
            self._say(f"view of topic {self._topic}: {self.path} is of {reason}: built anew")
            connection.close()
            self._delete()
            connection = self._connect(WRITER_CACHE_BYTES)
        self._create(connection)
        return connection

    def open_reader(self) -> sqlite3.Connection:
        """Return a connection that only reads."""
        connection = self._connect(READER_CACHE_BYTES)
        connection.execute("PRAGMA query_only = 1")
        return connection

    def set_aside(self, reason: str) -> None:
        """Have a damaged file out of the way, where one can look at it; only the last is kept."""
        aside = self.path.with_name(FILE + DAMAGED)
        self._say(
            f"view of topic {self._topic}: {self.path} is damaged ({reason}): it is {aside.name} "
            f"now, and the view is built anew"
        )
        with suppress(FileNotFoundError):
            self.path.replace(aside)
        self._delete()

    def _delete(self) -> None:
        # The log first: a log without its file is nothing, a file without its log is half of it.
        for suffix in ("-wal", "-shm", ""):
            self.path.with_name(FILE + suffix).unlink(missing_ok=True)

    def _connect(self, cache_bytes: int) -> sqlite3.Connection:
        # The writer and the readers each are used by one thread at a time, not always the same.
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA page_size = 8192")
            connection.execute("PRAGMA journal_mode = WAL")
            # Rows and positions are in one transaction: what a crash takes away is read again.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{cache_bytes >> 10}")
            connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _why_not(self, connection: sqlite3.Connection) -> str | None:
        """Return whose the file is instead, "new" if nobody's, None if it is this view's."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if not version and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return "new"
        if version != VERSION:
            return f"version {version} and not {VERSION}"
        found = connection.execute("SELECT topic, keys FROM identity").fetchone()
        if found != (self._topic, self._keys):
            topic, keys = found or ("none", "none")
            return f"topic {topic} with the key {keys}"
        return None

    def _create(self, connection: sqlite3.Connection) -> None:
        # In one transaction: a file that a crash has left is complete or new.
        connection.execute("BEGIN")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO identity VALUES (?, ?, NULL)", (self._topic, self._keys))
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not what SQLite has written."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def close_quietly(connection: sqlite3.Connection) -> None:
    """Close a connection to a file that may be damaged."""
    with suppress(sqlite3.Error):
        connection.close()
