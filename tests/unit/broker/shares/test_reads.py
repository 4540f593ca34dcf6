"""What a share group must not see of what was read."""

from types import SimpleNamespace

from moldau._native.records import Record
from moldau.broker.shares.reads import cut, open_content
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId
from moldau.records.batch import TRANSACTIONAL, build_batch
from moldau.records.control import build_end_transaction
from moldau.sharing.states import Acquired, ShareSpan


def batch(base: int, count: int, producer: int = -1) -> bytes:
    records = [Record(base + n, 0, None, b"value", []) for n in range(count)]
    return bytes(
        build_batch(
            records,
            attributes=0 if producer < 0 else TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else 0,
        )
    )


def marker(base: int, producer: int, *, commit: bool) -> bytes:
    data = bytearray(
        build_end_transaction(
            commit=commit,
            coordinator_epoch=0,
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(0),
            timestamp=0,
        )
    )
    data[:8] = base.to_bytes(8, "big")
    return bytes(data)


CONTENT = b"".join(
    (
        batch(0, 2, producer=1),  # aborted
        batch(2, 2),
        batch(4, 2, producer=2),  # committed
        marker(6, 1, commit=False),
        marker(7, 2, commit=True),
        batch(8, 2, producer=1),  # of the next transaction
    )
)


def read(*, is_committed: bool) -> object:
    aborted = [SimpleNamespace(producer_id=1, first_offset=0)]
    return SimpleNamespace(
        offset=Offset(0), read=SimpleNamespace(aborted=aborted), is_committed=is_committed
    )


def test_aborted_records_are_found() -> None:
    content = open_content(read(is_committed=True), CONTENT)  # type: ignore[arg-type]
    assert content.fetched.aborted == [ShareSpan(Offset(0), Offset(1))]
    assert [each.first for each in content.fetched.batches] == [0, 2, 4, 6, 7, 8]


def test_who_does_not_ask_sees_all() -> None:
    content = open_content(read(is_committed=False), CONTENT)  # type: ignore[arg-type]
    assert not content.fetched.aborted


def test_only_batches_with_something_acquired_are_sent() -> None:
    content = open_content(read(is_committed=True), CONTENT)  # type: ignore[arg-type]
    acquired = [Acquired(Offset(3), Offset(3), 1), Acquired(Offset(5), Offset(5), 1)]
    sent = cut(CONTENT, content.batches, acquired)
    assert bytes(sent) == batch(2, 2) + batch(4, 2, producer=2)
