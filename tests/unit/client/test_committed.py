"""What read_committed leaves out, batch by batch."""

from moldau._native.records import Record, read_batches
from moldau.client.committed import committed, visible
from moldau.protocol.messages.fetch import AbortedTransaction
from moldau.records.batch import TRANSACTIONAL, build_batch
from moldau.records.control import build_end_transaction


def _data(offset: int, producer_id: int = -1) -> bytes:
    attributes = TRANSACTIONAL if producer_id >= 0 else 0
    return build_batch(
        [Record(offset, 0, None, b"x")],
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )


def _marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return build_end_transaction(
        commit=commit,
        coordinator_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=0,
        offset=offset,
    )


def _seen(data: bytes, *aborted: tuple[int, int]) -> list[int]:
    rows = [AbortedTransaction(producer_id=who, first_offset=first) for who, first in aborted]
    return [batch.base_offset for batch in committed(data, read_batches(data), rows)]


LOG = b"".join(
    [
        _data(0, 1),
        _data(1, 2),
        _data(2),
        _marker(3, 1, commit=False),
        _data(4, 1),
        _marker(5, 2, commit=True),
        _marker(6, 1, commit=True),
        _data(7, 2),
        _marker(8, 2, commit=False),
    ]
)


def test_markers_are_never_seen() -> None:
    assert [batch.base_offset for batch in visible(read_batches(LOG))] == [0, 1, 2, 4, 7]
    assert _seen(LOG) == [0, 1, 2, 4, 7]


def test_an_aborted_transaction_ends_at_its_marker() -> None:
    assert _seen(LOG, (1, 0)) == [1, 2, 4, 7]
    assert _seen(LOG, (1, 0), (2, 7)) == [1, 2, 4]


def test_an_abort_that_began_before_the_fetch_counts() -> None:
    data = _data(4, 1) + _marker(5, 1, commit=False) + _data(6, 1)
    assert _seen(data, (1, 0)) == [6]


def test_the_order_of_the_list_does_not_matter() -> None:
    assert _seen(LOG, (2, 7), (1, 0)) == [1, 2, 4]


def test_records_without_a_transaction_are_seen_whoever_wrote_them() -> None:
    plain = build_batch(
        [Record(1, 0, None, b"x")], producer_id=1, producer_epoch=0, base_sequence=0
    )
    assert _seen(_data(0, 1) + plain, (1, 0)) == [1]
