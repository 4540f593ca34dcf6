"""Stored states, brought together: of two that say something of an offset the later counts."""

from collections.abc import Iterable, Sequence

from moldau.kernel.ids import Offset
from moldau.sharing.states import StateBatch


def combine(
    known: Sequence[StateBatch], added: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return batches that overlap nowhere, from `start_offset` on, as few as possible."""
    batches = list(known)
    for batch in added:
        if not batches or batches[-1].last < batch.first:
            batches.append(batch)
        else:
            batches = _put(batches, batch)
    if batches and batches[0].first < start_offset:
        batches = _from_start(batches, start_offset)
    return tuple(_join(batches) if len(batches) > 1 else batches)


def _put(batches: Iterable[StateBatch], new: StateBatch) -> list[StateBatch]:
    """Put a batch into others that do not overlap each other."""
    result = []
    rest: StateBatch | None = new
    for batch in batches:
        if rest is None or batch.last < rest.first:
            result.append(batch)
            continue
        if rest.last < batch.first:
            result += (rest, batch)
            rest = None
            continue
        if batch.first < rest.first:
            result.append(batch._replace(last=Offset(rest.first - 1)))
        elif rest.first < batch.first:
            result.append(rest._replace(last=Offset(batch.first - 1)))
        first = max(batch.first, rest.first)
        last = min(batch.last, rest.last)
        result.append(max(batch, rest, key=_rank)._replace(first=first, last=last))
        if batch.last > last:
            result.append(batch._replace(first=Offset(last + 1)))
        rest = rest._replace(first=Offset(last + 1)) if rest.last > last else None
    if rest is not None:
        result.append(rest)
    return result


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.rank


def _from_start(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    return [
        batch._replace(first=Offset(start_offset)) if batch.first < start_offset else batch
        for batch in batches
        if batch.last >= start_offset
    ]


def _join(batches: Iterable[StateBatch]) -> Iterable[StateBatch]:
    before: StateBatch | None = None
    for batch in batches:
        if before is None:
            before = batch
        elif before.last + 1 == batch.first and before.rank == batch.rank:
            before = before._replace(last=batch.last)
        else:
            yield before
            before = batch
    if before is not None:
        yield before
