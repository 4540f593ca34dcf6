"""Which records a member gets of those that were read for it."""

from collections.abc import Iterable, Sequence

from moldau.kernel.ids import Offset
from moldau.sharing.limits import AcquisitionWish, ShareLimits
from moldau.sharing.states import FetchedBatches, RecordState, ShareSpan
from moldau.sharing.window import Run, ShareWindow


def acquire(
    window: ShareWindow, fetched: FetchedBatches, wish: AcquisitionWish, limits: ShareLimits
) -> list[Run]:
    """Mark runs as acquired, delivered once more, and return them.

    What was delivered before comes first. Records that are delivered for the last time go alone,
    and those that were delivered often in smaller and smaller numbers: if one of them makes its
    readers fail, the others get away from it.
    """
    offset, batches, aborted = fetched
    if not batches or batches[-1].last < window.start:
        return []
    last = batches[-1].last
    room = limits.in_flight_max - (window.end - window.start)
    if room <= 0 and last >= window.end:
        last = Offset(window.end - 1)
    if aborted:
        _archive(window, aborted)
    if offset >= window.end:
        # No member had any of it, as nearly always.
        acquired = _anew(window, batches, aborted, wish, min(wish.records_max, room))
    else:
        _archive_missing(window, max(offset, window.start), batches)
        acquired, is_enough = _again(window, ShareSpan(offset, last), batches, wish, limits)
        wanted = min(wish.records_max - sum(map(len, acquired)), room)
        if not is_enough and wanted > 0 and last >= window.end:
            acquired += _anew(window, batches, aborted, wish, wanted)
    for run in acquired:
        run.state = RecordState.ACQUIRED
        run.delivery_count += 1
    return acquired


def _again(
    window: ShareWindow,
    fetched: ShareSpan,
    batches: Sequence[ShareSpan],
    wish: AcquisitionWish,
    limits: ShareLimits,
) -> tuple[list[Run], bool]:
    """Take what is in the window and no member has; say whether that is all for this time."""
    acquired: list[Run] = []
    taken = 0
    for run in window.over(*fetched):
        if taken >= wish.records_max:
            return acquired, True
        if not run.is_available:
            continue
        begin, end = max(run.first, fetched.first), min(run.last, fetched.last)
        alone = _together_max(run, limits)
        if alone is not None and acquired:
            return acquired, True
        wanted = wish.records_max - taken
        if end - begin >= wanted:
            cut = Offset(begin + wanted - 1)
            end = cut if wish.is_strict else min(end, _end_of_batch(batches, cut))
        if alone is not None:
            end = min(end, Offset(begin + alone - 1))
        acquired += window.within(begin, end)
        taken += end - begin + 1
        if alone is not None:
            return acquired, True
    return acquired, False


def _together_max(run: Run, limits: ShareLimits) -> int | None:
    """Return how many may be delivered together that were delivered often; None: all."""
    is_last_time = run.delivery_count == limits.delivery_count_max - 1
    if is_last_time and limits.delivery_count_max > 2:
        return 1
    if run.delivery_count < limits.careful_from:
        return None
    return max(1, len(run) >> (run.delivery_count - limits.careful_from + 1))


def _anew(
    window: ShareWindow,
    batches: Sequence[ShareSpan],
    aborted: Sequence[ShareSpan],
    wish: AcquisitionWish,
    records_max: int,
) -> list[Run]:
    """Take records that no member had before, and let the window reach up to them."""
    first = max(window.end, batches[0].first)
    last = batches[-1].last
    if records_max <= 0 or last < first:
        return []
    if last - first >= records_max:
        cut = Offset(first + records_max - 1)
        last = cut if wish.is_strict else _end_of_batch(batches, cut)
    if first > window.end:
        # Nothing is left of what was there, or nothing ever was.
        window.append(Run(window.end, Offset(first - 1), RecordState.ARCHIVED, 0))
    runs = _runs(batches, first, last, max(1, wish.batch_size))
    for run in runs:
        window.append(run)
    if not aborted:
        return runs
    _archive(window, aborted)
    return [run for run in window.over(first, last) if run.is_available]


def _runs(batches: Sequence[ShareSpan], first: Offset, last: Offset, batch_size: int) -> list[Run]:
    """Cut a range where batches of the log begin, into runs of at least `batch_size`."""
    runs = []
    begin = first
    for batch in batches:
        if batch.first > last:
            break
        if batch.first - begin >= batch_size:
            runs.append(Run(begin, Offset(batch.first - 1), RecordState.AVAILABLE, 0))
            begin = batch.first
    runs.append(Run(begin, last, RecordState.AVAILABLE, 0))
    return runs


def _end_of_batch(batches: Sequence[ShareSpan], offset: Offset) -> Offset:
    for batch in batches:
        if batch.last >= offset:
            # An offset between two batches is in none: there the range may end.
            return max(offset, batch.last) if batch.first <= offset else offset
    return offset


def _archive_missing(window: ShareWindow, first: Offset, batches: Sequence[ShareSpan]) -> None:
    """Be done with what the log has no record of: it was compacted away."""
    holes = []
    for batch in batches:
        if batch.first > first:
            holes.append(ShareSpan(first, Offset(batch.first - 1)))
        first = max(first, Offset(batch.last + 1))
    _archive(window, holes)


def _archive(window: ShareWindow, spans: Iterable[ShareSpan]) -> None:
    """Be done with what no member has of some ranges, as far as the window reaches."""
    for span in spans:
        first, last = max(span.first, window.start), min(span.last, Offset(window.end - 1))
        if first > last:
            continue
        for run in window.within(first, last):
            if run.is_available:
                run.settle(RecordState.ARCHIVED)
