import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.errors import MalformedFileError
from moldau.log.leader_epochs import UNKNOWN_END, EpochEnd, EpochStart, LeaderEpochs


def epochs(*starts: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochStart(LeaderEpoch(e), Offset(s)) for e, s in starts)


def end(cache: LeaderEpochs, epoch: int, log_end: int = 100) -> tuple[int, int]:
    return cache.end_offset_for(LeaderEpoch(epoch), Offset(log_end))


def test_end_offsets() -> None:
    cache = epochs((2, 10), (4, 20), (5, 40))
    assert end(cache, 5) == (5, 100)
    assert end(cache, 4) == (4, 40)
    assert end(cache, 3) == (2, 20)
    assert end(cache, 2) == (2, 20)
    # The log of an epoch before the first is gone: the follower goes on at our start.
    assert end(cache, 1) == (1, 10)
    assert end(cache, 6) == UNKNOWN_END
    assert end(cache, -1) == UNKNOWN_END
    assert end(epochs(), 0) == UNKNOWN_END


def test_assigning_removes_what_contradicts() -> None:
    cache = epochs((1, 10), (2, 20), (3, 30))
    assert not cache.assign(LeaderEpoch(3), Offset(35))
    assert cache.assign(LeaderEpoch(4), Offset(20))
    assert cache.starts == [(1, 10), (4, 20)]
    assert cache.assign(LeaderEpoch(2), Offset(50))
    assert cache.starts == [(1, 10), (2, 50)]
    assert cache.assign(LeaderEpoch(2), Offset(40))
    assert cache.starts == [(1, 10), (2, 40)]


def test_truncating() -> None:
    cache = epochs((1, 10), (2, 20), (3, 30))
    assert not cache.truncate_from_end(Offset(31))
    assert cache.truncate_from_end(Offset(30))
    assert cache.starts == [(1, 10), (2, 20)]
    assert not cache.truncate_from_start(Offset(9))
    assert not cache.truncate_from_start(Offset(10))
    assert cache.truncate_from_start(Offset(15))
    assert cache.starts == [(1, 15), (2, 20)]
    assert cache.truncate_from_start(Offset(20))
    assert cache.starts == [(2, 20)]
    assert cache.truncate_from_start(Offset(99))
    assert cache.starts == [(2, 99)]
    assert cache.clear()
    assert not cache.clear()
    assert cache.latest is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1), st.data())
def test_against_a_list_of_epochs(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    """The model: the epoch of every offset, one after the other."""
    written: list[int] = []
    for skipped, length in runs:
        epoch = (written[-1] if written else 0) + skipped
        written += [epoch] * length
    cache = epochs()
    for offset, epoch in enumerate(written):
        cache.assign(LeaderEpoch(epoch), Offset(offset))
    start = 0
    if data.draw(st.booleans()):
        start = data.draw(st.integers(0, len(written)))
        cache.truncate_from_start(Offset(start))
    if data.draw(st.booleans()):
        stop = data.draw(st.integers(start, len(written)))
        cache.truncate_from_end(Offset(stop))
        del written[stop:]
    assert LeaderEpochs.parse("x", cache.render()).starts == cache.starts

    for offset in range(start, len(written)):
        assert cache.find_epoch_of(Offset(offset)) == written[offset]
    for epoch in set(written[start:]):
        last = max(offset for offset, other in enumerate(written) if other == epoch)
        assert end(cache, epoch, len(written)) == (epoch, last + 1)


def test_checkpoint_as_kafka_writes_it() -> None:
    assert epochs((0, 0), (3, 17)).render() == b"0\n2\n0 0\n3 17\n"
    assert LeaderEpochs.parse("x", b"").starts == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"0\n1\n0 0 0\n", "x:3: 3 words instead of 2"),
        (b"0\n1\n-1 0\n", "x:3: '-1' is not a number"),
        (b"0\n2\n1 10\n1 20\n", "x:4: epochs and offsets must both grow"),
        (b"0\n2\n2 10\n1 20\n", "x:4: epochs and offsets must both grow"),
        (b"0\n2\n1 10\n2 10\n", "x:4: epochs and offsets must both grow"),
    ],
)
def test_malformed_checkpoints_are_named(data: bytes, message: str) -> None:
    with pytest.raises(MalformedFileError) as caught:
        LeaderEpochs.parse("x", data)
    assert str(caught.value) == message


def test_an_epoch_without_records_leaves_nothing() -> None:
    cache = epochs((1, 10), (2, 20), (3, 20))
    assert cache.starts == [(1, 10), (3, 20)]
    assert end(cache, 2) == EpochEnd(LeaderEpoch(1), Offset(20))
