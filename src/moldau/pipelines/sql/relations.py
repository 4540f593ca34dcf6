"""Streams and tables as SQL knows them: names for topics, with columns."""

from dataclasses import dataclass
from enum import StrEnum


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

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns of the record's key."""
        return tuple(each for each in self.columns if each.is_key)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns of the record's value."""
        return tuple(each for each in self.columns if not each.is_key)
