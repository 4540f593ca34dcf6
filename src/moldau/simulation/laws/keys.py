"""A compacted topic: the last value of each key stays, and no earlier one comes back."""

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.violation import LawViolation

NO_OFFSET = -1


@dataclass(slots=True, eq=False)
class KeyedWrite:
    """A record with a key, which one writer sends."""

    value: bytes | None
    """None deletes the key."""
    offset: int = NO_OFFSET
    """Where it is, once it was acknowledged."""


class KeyedWrites:
    """All records of compacted partitions, by key; each key has one writer."""

    def __init__(self) -> None:
        self._writes: dict[tuple[TopicPartition, bytes], list[KeyedWrite]] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that were written to."""
        return sorted({place for place, _ in self._writes})

    def begin_write(self, place: TopicPartition, key: bytes, value: bytes | None) -> KeyedWrite:
        """Note a record before it leaves."""
        write = KeyedWrite(value)
        self._writes.setdefault((place, key), []).append(write)
        return write

    def check_end(
        self, place: TopicPartition, found: Iterable[tuple[int, bytes, bytes | None]]
    ) -> None:
        """Check a last read of a partition: offsets, keys and values in their order."""
        last = {key: (offset, value) for offset, key, value in found}
        for (partition, key), writes in self._writes.items():
            if partition == place:
                _check_last(f"{key!r} in {place}", writes, last.get(key))


def _check_last(
    what: str, writes: list[KeyedWrite], found: tuple[int, bytes | None] | None
) -> None:
    """Check what is there of a key; writes that were not acknowledged may have had effect."""
    acknowledged = [number for number, write in enumerate(writes) if write.offset != NO_OFFSET]
    first = acknowledged[-1] if acknowledged else 0
    possible = [write.value for write in writes[first:]]
    if found is None:
        if acknowledged and None not in possible:
            raise LawViolation("lost key", f"{what} is gone, and may be {possible}")
        return
    offset, value = found
    if value not in possible or (acknowledged and offset < writes[first].offset):
        raise LawViolation("stale key", f"{what} is {value!r} at {offset}, and may be {possible}")
