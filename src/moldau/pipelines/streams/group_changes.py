"""What a table's rows add to groups: a row that changes takes back what it has added."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from moldau.pipelines.streams.folds import Kept
from moldau.pipelines.streams.table_folds import TableFold, ValueCounts

_CHUNK_ROWS: Final = 4096
"""So many changes of one group are in memory at once."""


class Contribution(NamedTuple):
    """What a row adds to its group."""

    group: str
    values: str
    """What each aggregate takes of it, packed."""


class GroupChange(NamedTuple):
    """What a group is told of a row."""

    contribution: Contribution
    is_added: bool
    """It is taken back else."""


def changes_between(before: Contribution | None, after: Contribution | None) -> list[GroupChange]:
    """Return what groups are told when a row is another one, was not there, or is no more."""
    if before == after:
        return []
    changes = []
    if before is not None:
        changes.append(GroupChange(before, is_added=False))
    if after is not None:
        changes.append(GroupChange(after, is_added=True))
    return changes


class Changed(NamedTuple):
    """What has become of a group: a row, or none any more."""

    results: tuple[Any, ...] | None


class GroupStep(NamedTuple):
    """What is kept of a group from now on, and what to tell of it."""

    state: str | None
    changed: Changed | None
    """None if its results are as they were."""


class GroupAggregates:
    """All aggregates of one group; its state is a text, None as long as it has no rows."""

    def __init__(self, folds: Sequence[TableFold]) -> None:
        self._folds = folds

    def change(
        self,
        state: str | None,
        changes: Iterable[tuple[bool, Sequence[Any]]],
        counts: Sequence[ValueCounts | None],
    ) -> GroupStep:
        """Apply a batch's changes: each is added or taken back, with a value for each aggregate.

        What is taken back has been added in a batch before, so that their order means nothing.
        """
        count, kept = self._read(state)
        before = self._results(count, kept)
        remaining = iter(changes)
        while chunk := list(islice(remaining, _CHUNK_ROWS)):
            count += sum(1 if is_added else -1 for is_added, _ in chunk)
            kept = [
                fold.change(
                    kept[place],
                    [row[place] for is_added, row in chunk if is_added and row[place] is not None],
                    [
                        row[place]
                        for is_added, row in chunk
                        if not is_added and row[place] is not None
                    ],
                    counts[place],
                )
                for place, fold in enumerate(self._folds)
            ]
        assert count >= 0, "a row is taken back that was not added"
        after = self._results(count, kept)
        # By their texts: NaN is not equal to itself.
        changed = None if repr(before) == repr(after) else Changed(after)
        return GroupStep(json.dumps([count, *kept]) if count else None, changed)

    def _read(self, state: str | None) -> tuple[int, list[Kept]]:
        if state is None:
            return 0, [fold.empty for fold in self._folds]
        count, *kept = json.loads(state)
        return count, kept

    def _results(self, count: int, kept: Sequence[Kept]) -> tuple[Any, ...] | None:
        if not count:
            return None
        return tuple(fold.result(each) for fold, each in zip(self._folds, kept, strict=True))
