"""A topic that is made of another by transactions: each record is used once, and none left out."""

from collections.abc import Iterable, Mapping

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.violation import LawViolation

BEHIND = b"<"
"""Between what a value has of its own and the record that it was made of."""


def origin(source: TopicPartition, offset: int) -> bytes:
    """Return the end of a value: the record that it was made of."""
    return BEHIND + f"{source} at {offset}".encode()


def check_transformed(
    sources: Mapping[TopicPartition, Iterable[tuple[int, bytes]]],
    made: Iterable[bytes],
    committed: Mapping[TopicPartition, int],
) -> None:
    """Check that what was made is made of all records below the committed offsets, once each.

    All three are what was found by a last read of what is committed.
    """
    used: dict[bytes, bytes] = {}
    for value in made:
        used_for = value[value.rindex(BEHIND) :]
        other = used.setdefault(used_for, value)
        if other != value:
            raise LawViolation("processed twice", f"{other!r} and {value!r} are made of the same")
    for source, records in sources.items():
        for offset, value in records:
            is_used = origin(source, offset) in used
            if is_used != (offset < committed.get(source, 0)):
                told = "is used" if is_used else "is not used"
                raise LawViolation(
                    "torn transaction",
                    f"{value!r} of {source} at {offset} {told}, and committed is"
                    f" {committed.get(source, 0)}",
                )
