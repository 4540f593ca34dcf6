"""Which of a table's records of one key is the latest."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

Packed = TypeVar("Packed")
"""A row, as it is kept in state."""


class RecordPlace(NamedTuple):
    """Where a record is in its topic, and when it was written."""

    partition: int
    offset: int
    timestamp_us: int


class LatestRecord(Generic[Packed]):
    """The latest of the records of one key that it has seen, in whatever order they come.

    In a partition the last one by its offset. A key is in several partitions only if their number
    has grown: then it is the partition whose last record has the latest time.
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[RecordPlace, Packed | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def see(self, place: Mapping[str, int], row: Packed | None) -> None:
        """Take a record; a null row is a tombstone."""
        new = RecordPlace(**place)
        known = self._rows.get(new.partition)
        if known is None or new.offset > known[0].offset:
            self._rows[new.partition] = new, row

    @property
    def row(self) -> Packed | None:
        """The latest record's row, None if it is a tombstone."""
        latest = max(self._rows, key=lambda each: self._rows[each][0].timestamp_us)
        return self._rows[latest][1]
