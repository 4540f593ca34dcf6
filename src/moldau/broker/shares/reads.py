"""What there is for a share group in a log, before and after it is read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau._native.fetch import try_read
from moldau._native.records import Batch, read_batches
from moldau.broker.shares.partition import LedShare
from moldau.kernel.disk import Buffer, DiskColdError
from moldau.kernel.ids import Offset
from moldau.log.errors import UNREADABLE, OffsetOutOfRangeError
from moldau.log.extents import Isolation, Read
from moldau.log.markers import find_marker
from moldau.sharing.limits import ShareLimits
from moldau.sharing.partition import SharePartition
from moldau.sharing.states import Acquired, FetchedBatches, ShareSpan

if TYPE_CHECKING:
    from moldau.broker.broker_view import BrokerView


class ShareRead(NamedTuple):
    """A range of a log that may have records for a member."""

    share: LedShare
    partition: SharePartition
    offset: Offset
    read: Read
    is_committed: bool


class ColdShareError(Exception):
    """Something that was looked at is not in memory."""

    def __init__(self, share: LedShare, cold: DiskColdError) -> None:
        super().__init__(str(cold))
        self.share = share
        self.cold = cold


def find_read(broker: "BrokerView", share: LedShare, bytes_max: int) -> ShareRead | None:
    """Find what a member could acquire, None if there is nothing, or not for now."""
    partition, log = share.partition, share.replica.log
    if partition is None or log is None or share.is_read or not share.may_have_records:
        return None
    terms = share.terms()
    partition.log_begins_at(log.log_start)
    if not partition.can_acquire(terms.limits):
        return None
    is_committed = terms.is_stable
    offset = partition.next_fetch_offset
    try:
        read = log.read(
            offset,
            bytes_max=bytes_max,
            isolation=Isolation.STABLE if is_committed else Isolation.HIGH_WATERMARK,
            at_least_one_batch=True,
        )
    except DiskColdError as cold:
        raise ColdShareError(share, cold) from cold
    except OffsetOutOfRangeError:
        # The log was truncated, or does not reach up to where the group was told to begin.
        return None
    except UNREADABLE as error:
        broker.logs.failed(share.replica.partition, error)
        return None
    if read.extent is None:
        return None
    return ShareRead(share, partition, offset, read, is_committed)


class HotRead(NamedTuple):
    """The records of one partition for a member, read already."""

    partition: SharePartition
    fetched: FetchedBatches
    batches: Sequence[Batch]
    content: Buffer
    limits: ShareLimits


def try_hot(share: LedShare, records_max: int, bytes_max: int) -> HotRead | None:
    """Read what a member could acquire; None if there is nothing, or `find_read` has to look.

    The kernel declines what is not in memory, and aborted transactions. Of what no member had yet
    only as much is looked at as is wanted: behind a backlog, that is little of what was read.
    """
    partition, log = share.partition, share.replica.log
    if partition is None or log is None or share.is_read:
        return None
    offset, end = partition.next_fetch_offset, log.end
    if offset >= end.high_watermark or end.log_start > partition.start_offset:
        return None
    terms = share.terms()
    if not partition.can_acquire(terms.limits):
        return None
    try:
        content = try_read(share.replica, offset, terms.is_stable, bytes_max)
    except UNREADABLE:
        return None
    if content is None:
        return None
    batches = read_batches(content, check_crc=False)
    if len(batches) > 1 and offset >= partition.end_offset:
        batches = batches[: _needed(batches, offset + records_max)]
    return HotRead(
        partition, FetchedBatches(offset, _spans(batches)), batches, content, terms.limits
    )


def _needed(batches: Sequence[Batch], end: int) -> int:
    """Return how many batches there are up to the one behind which nothing is before `end`."""
    for number, batch in enumerate(batches, 1):
        if batch.last_offset >= end:
            return number
    return len(batches)


def _spans(batches: Sequence[Batch]) -> list[ShareSpan]:
    return [ShareSpan(Offset(batch.base_offset), Offset(batch.last_offset)) for batch in batches]


class Content(NamedTuple):
    """Batches that were read, and what that means for a share partition."""

    batches: Sequence[Batch]
    fetched: FetchedBatches


def open_content(found: ShareRead, content: Buffer) -> Content:
    """Look at the batches of what was read."""
    batches = read_batches(content, check_crc=False)
    aborted = _aborted(found.read, batches, content) if found.is_committed else ()
    return Content(batches, FetchedBatches(found.offset, _spans(batches), aborted))


def _aborted(read: Read, batches: Sequence[Batch], content: Buffer) -> list[ShareSpan]:
    """Return the batches of transactions that were aborted."""
    begins = sorted(read.aborted, key=lambda each: each.first_offset)
    open_producers: set[int] = set()
    spans = []
    for batch in batches:
        while begins and begins[0].first_offset <= batch.last_offset:
            open_producers.add(begins.pop(0).producer_id)
        if batch.is_control:
            marker = find_marker(batch, content)
            if marker is not None and marker.is_abort:
                open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            spans.append(ShareSpan(Offset(batch.base_offset), Offset(batch.last_offset)))
    return spans


def cut(content: Buffer, batches: Sequence[Batch], acquired: Sequence[Acquired]) -> memoryview:
    """Return the batches that have what was acquired, from the first to the last of them."""
    if len(batches) == 1:
        return memoryview(content)[batches[0].position : batches[0].position + batches[0].size]
    first, last = acquired[0].first, acquired[-1].last
    needed = [
        batch for batch in batches if batch.last_offset >= first and batch.base_offset <= last
    ]
    end = needed[-1].position + needed[-1].size
    return memoryview(content)[needed[0].position : end]
