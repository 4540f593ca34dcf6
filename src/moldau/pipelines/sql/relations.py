"""Streams and tables as SQL knows them: names for topics, with columns."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from moldau.pipelines.decoding.epochs import UNIT_DEFAULT, Epoch
from moldau.pipelines.streams.declared import OnError

EPOCH_TYPE: Final = "bigint"
"""Of a number since 1970, as a record has it."""
TIME_TYPE: Final = "timestamp"
"""Of the same, as a row has it."""
FAIL: Final[OnError] = "fail"


class RelationKind(StrEnum):
    """What a topic is read as."""

    STREAM = "STREAM"
    """Every record is a row."""
    TABLE = "TABLE"
    """The latest record of each key is a row."""


def guessed(topic: str) -> str:
    """Return what an error about a column of a topic that nobody has declared should end with."""
    return (
        f"; the columns of topic {topic} are guessed from its first records, declare it with "
        "CREATE STREAM to have others"
    )


def records_left_out(count: int, of: str = "") -> str:
    """Return what the reader of an answer should know of records that did not decode."""
    words = "record" if count == 1 else "records"
    verb = "does" if count == 1 else "do"
    left = "is" if count == 1 else "are"
    return f"{count:,} {words} {of}{verb} not decode, and {left} left out (on_error)"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a record's key or of its value."""

    name: str
    type: str
    """As Spark's DDL writes it, such as `decimal(10,2)` or `struct<start: timestamp>`."""
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A topic that was declared as a stream or a table."""

    name: str
    kind: RelationKind
    topic: str
    columns: tuple[Column, ...]
    format: str = "json"
    """Of the value, one of `app.stream`'s. A key of one plain column is as Java's serializers
    write it, any other is JSON."""
    event_time: str | None = None
    watermark: str | None = None
    partitions: int | None = None
    """For a topic that is not there yet."""
    event_time_unit: str | None = None
    """Of an event time that counts since 1970: its column is a timestamp, and records have a
    number."""
    on_error: OnError = FAIL
    """What becomes of records that do not decode, one of `app.stream`'s."""

    @property
    def epoch(self) -> Epoch | None:
        """The event time, if records have it as a number."""
        if self.event_time is None or self.event_time_unit is None:
            return None
        return Epoch(self.event_time, self.event_time_unit)

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns of the record's key."""
        return tuple(each for each in self.columns if each.is_key)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns of the record's value."""
        return tuple(each for each in self.columns if not each.is_key)

    @property
    def stored_values(self) -> tuple[Column, ...]:
        """The columns of the value, with the types that records have."""
        epoch = self.epoch
        return tuple(
            replace(each, type=EPOCH_TYPE)
            if epoch is not None and each.name == epoch.column
            else each
            for each in self.values
        )


def with_event_time(
    columns: tuple[Column, ...], event_time: str | None, unit: str | None
) -> tuple[tuple[Column, ...], str | None, str | None]:
    """Return columns as rows have them, with the name and the unit of the event time.

    A bigint of the value that is the event time is a timestamp in rows; without a word it counts
    milliseconds. The name is that of the column, in whatever case it was said.
    """
    found = next(
        (each for each in columns if event_time and each.name.lower() == event_time.lower()), None
    )
    if found is None:
        return columns, event_time, None
    if found.type != EPOCH_TYPE or found.is_key:
        return columns, found.name, None
    timed = (replace(each, type=TIME_TYPE) if each is found else each for each in columns)
    return tuple(timed), found.name, unit or UNIT_DEFAULT
