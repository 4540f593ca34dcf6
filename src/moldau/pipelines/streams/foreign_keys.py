"""A join of tables by a foreign key: who tells whom, when a row of either side changes.

A row of the left side points to a key of the right one. By its own key is kept where it points to;
by the key of the right side the rows that point there, beside the right row. Of a row that points
elsewhere from now on only the new place tells, so that a key is told once in a batch.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from moldau.pipelines.streams.table_joins import Pair, joined_row

NOTHING: Pair = (None, None)


class Pointer(NamedTuple):
    """Where a row points to."""

    foreign: bytes | None
    """The right side's key; a null matches nothing."""
    row: str | None = None
    """The row itself, kept here only if it points nowhere: no other place has it."""


class Note(NamedTuple):
    """What the place that a row points to, or has pointed to, is told of it."""

    foreign: bytes | None
    row: str | None
    """None if it does not point there any more."""
    is_moved: bool
    """Whether it has pointed elsewhere, or does from now on: the new place tells of it."""


class JoinedChange(NamedTuple):
    """A row of the join by the left side's key: twice None if there is none any more."""

    key: bytes
    pair: Pair


class LeftRows(Protocol):
    """The rows that point to one place, by their keys; wherever they are kept."""

    def get(self, key: bytes) -> str | None:
        """Return a row, None if it does not point here."""

    def put(self, key: bytes, row: str | None) -> None:
        """Keep a row, or forget it."""

    def items(self) -> Iterator[tuple[bytes, str]]:
        """Yield all of them."""


def point(
    how: str, before: Pointer | None, foreign: bytes | None, row: str | None
) -> tuple[Pointer | None, list[Note]]:
    """Return where a row points to now, None if it is deleted, and what each place is told."""
    # A row that points nowhere is in no inner join.
    is_there = row is not None and (foreign is not None or how == "left")
    after = Pointer(foreign, row if foreign is None else None) if is_there else None
    if after is not None and after.foreign is None and after == before:
        return after, []
    notes = []
    is_moved = before is not None and after is not None and before.foreign != after.foreign
    if before is not None and (after is None or is_moved):
        notes.append(Note(before.foreign, None, is_moved))
    if after is not None:
        notes.append(Note(after.foreign, row, is_moved))
    return after, notes


def meet(
    how: str,
    right: tuple[str | None, str | None],
    notes: Iterable[tuple[bytes, Note]],
    rows: LeftRows,
) -> Iterator[JoinedChange]:
    """Keep the rows that point to a place, and yield those of the join that have changed.

    `right` is its row before and after this batch; `notes` are by the left side's keys, each of
    which has one at most.
    """
    before, after = right
    noted = set()
    for key, note in notes:
        noted.add(key)
        known = rows.get(key)
        if known != note.row:
            rows.put(key, note.row)
        old = joined_row(how, (known, before)) if known is not None else NOTHING
        new = joined_row(how, (note.row, after)) if note.row is not None else NOTHING
        # What another place has told is not known here.
        if (note.is_moved and note.row is not None) or (not note.is_moved and old != new):
            yield JoinedChange(key, new)
    if before == after:
        return
    for key, row in rows.items():
        new = joined_row(how, (row, after))
        if key not in noted and new != joined_row(how, (row, before)):
            yield JoinedChange(key, new)


def stay_alone(notes: Iterable[tuple[bytes, Note]]) -> Iterator[JoinedChange]:
    """Yield the rows that point nowhere, as a left join has them."""
    for key, note in notes:
        if note.row is not None or not note.is_moved:
            yield JoinedChange(key, (note.row, None))
