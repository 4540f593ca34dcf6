"""Compaction as it should be, over lists of records in memory; slow and plain on purpose."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from moldau.log.aborted_index import AbortedTransaction
from moldau.log.compaction.plan import LastRecord
from tests.unit.log.compaction.logs import Rows


@dataclass(frozen=True)
class Round:
    """One compaction: keys come from [first_dirty, keys_end), segments end at `end`."""

    first_dirty: int
    keys_end: int
    end: int
    now_ms: int
    delete_retention_ms: int


def compact(
    batches: Sequence[Rows],
    turn: Round,
    aborted: Collection[AbortedTransaction],
    last_records: Mapping[int, LastRecord],
    rewritten_end: int,
) -> list[Rows]:
    """Return what is left of the batches; those from `rewritten_end` on are not touched."""
    last: dict[bytes, int] = {}
    for rows in batches:
        if not rows.is_control and not is_aborted(rows, aborted):
            for row in rows.rows:
                if row.key is not None and turn.first_dirty <= row.offset < turn.keys_end:
                    last[row.key] = row.offset

    left: list[Rows] = []
    for number, rows in enumerate(batches):
        if rows.base_offset >= rewritten_end:
            left.append(rows)
            continue
        if rows.is_control:
            kept = _control(rows, turn, has_data=_has_data(batches[:number], rows.producer_id))
        elif is_aborted(rows, aborted):
            kept = replace(rows, rows=())
        else:
            kept = _data(rows, turn, last)
        if kept.rows:
            left.append(kept)
        elif _is_needed(rows, turn, last_records):
            left.append(replace(kept, codec=0, horizon=None))
    return left


def is_aborted(rows: Rows, aborted: Collection[AbortedTransaction]) -> bool:
    return rows.is_transactional and any(
        a.producer_id == rows.producer_id and a.first_offset <= rows.base_offset <= a.last_offset
        for a in aborted
    )


def _has_data(before: Sequence[Rows], producer_id: int) -> bool:
    """Whether the transaction that ends behind `before` has batches there."""
    for rows in reversed(before):
        if rows.producer_id == producer_id and rows.is_transactional:
            return not rows.is_control
    return False


def _control(rows: Rows, turn: Round, *, has_data: bool) -> Rows:
    if has_data or not rows.rows:
        return rows
    if rows.horizon is None:
        return replace(rows, horizon=turn.now_ms + turn.delete_retention_ms)
    return replace(rows, rows=()) if rows.horizon <= turn.now_ms else rows


def _data(rows: Rows, turn: Round, last: Mapping[bytes, int]) -> Rows:
    is_expired = rows.horizon is not None and rows.horizon <= turn.now_ms
    kept = tuple(
        row
        for row in rows.rows
        if row.offset >= turn.keys_end
        or (
            row.key is not None
            and row.offset >= last.get(row.key, -1)
            and not (row.value is None and is_expired)
        )
    )
    horizon = rows.horizon
    if (
        horizon is None
        and rows.last_offset < turn.keys_end
        and any(row.value is None for row in kept)
    ):
        horizon = turn.now_ms + turn.delete_retention_ms
    return replace(rows, rows=kept, horizon=horizon)


def _is_needed(rows: Rows, turn: Round, last_records: Mapping[int, LastRecord]) -> bool:
    if rows.last_offset == turn.end - 1:
        return True
    last = last_records.get(rows.producer_id) if rows.producer_id >= 0 else None
    if last is None:
        return False
    if last.last_data_offset is None:
        return rows.is_control and last.producer_epoch == rows.producer_epoch
    return rows.last_offset == last.last_data_offset
