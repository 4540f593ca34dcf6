"""What a view answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KeyedRow:
    """The latest record of a key."""

    key: Mapping[str, Any]
    """The key's columns, a window among them."""
    value: bytes
    """As the record has it: whoever asks knows its format."""
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """A key's row, and how much of the topic the answer knows."""

    row: KeyedRow | None
    """None if the key is not there, or was deleted."""
    partition: int | None
    """The row's; of a key without one, that which it would be in, None while that is not known."""
    offset: int
    """Every record of that partition before this offset was seen."""
    caught_up: bool
    """Whether all that could be read of the topic a moment ago was seen."""


@dataclass(frozen=True, slots=True)
class ViewAnswers:
    """Some rows, in the order of their keys and windows."""

    rows: list[KeyedRow]
    offsets: Mapping[int, int]
    """Of each partition: every record before its offset was seen."""
    caught_up: bool


@dataclass(frozen=True, slots=True)
class ViewProgress:
    """How far a view has come."""

    positions: Mapping[int, int]
    """Of each partition: every record before its offset is in the view."""
    ends: Mapping[int, int]
    """Of each partition, behind the last record that can be read; without those not known."""
    caught_up: bool
    skipped_count: int
    """Records since the start whose key is not of the table's columns."""
    error: str | None
    """Why the view does not go on; it tries again by itself."""

    @property
    def lag(self) -> int:
        """How many offsets are not read yet, of the partitions whose end is known."""
        return sum(max(0, end - self.positions.get(each, 0)) for each, end in self.ends.items())
