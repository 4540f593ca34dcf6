"""The laws of a consumer's positions, on chosen and on random histories."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.offset_lookup import EARLIEST
from moldau.client.offset_reset import OffsetReset
from moldau.client.positions import PartitionState, Positions
from moldau.kernel.ids import TopicPartition

KEY, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def _positions(*keys: TopicPartition) -> Positions:
    positions = Positions(OffsetReset.parse("latest"))
    positions.assign(keys)
    return positions


def _at(offset: int) -> tuple[Positions, PartitionState]:
    positions = _positions(KEY)
    positions.seek(KEY, offset)
    return positions, positions.get(KEY)


def test_a_partition_begins_without_a_position_and_is_resolved_once() -> None:
    positions = _positions(KEY)
    state = positions.get(KEY)
    asked = state.generation
    assert state.position is None
    positions.resolve(KEY, asked, 7)
    assert (state.position, state.fetch_offset) == (7, 7)
    positions.resolve(KEY, asked, 3)
    assert state.position == 7


def test_an_answer_from_before_a_seek_is_dropped() -> None:
    positions, state = _at(5)
    before = state.generation
    positions.seek(KEY, 100)
    assert positions.find_current(KEY, before) is None
    assert positions.find_current(KEY, state.generation) is state


def test_an_answer_to_another_question_is_not_wanted() -> None:
    positions, state = _at(5)
    assert not positions.fetched(state, 4, 9, 0)
    assert not positions.fetched(state, 5, 5, 0)
    assert positions.fetched(state, 5, 9, 0)
    assert not positions.fetched(state, 5, 9, 0)
    assert (state.position, state.fetch_offset) == (5, 9)


def test_who_stays_assigned_keeps_the_position() -> None:
    positions, state = _at(5)
    positions.assign([KEY, OTHER])
    assert positions.get(KEY) is state
    positions.assign([OTHER])
    assert positions.find(KEY) is None
    positions.assign([KEY])
    assert positions.get(KEY).position is None


def test_a_pause_drops_what_was_fetched_and_keeps_the_position() -> None:
    positions, state = _at(5)
    positions.fetched(state, 5, 9, 3)
    positions.handed(state, 6)
    before = state.generation
    positions.pause(KEY)
    positions.pause(KEY)
    assert (state.position, state.fetch_offset, state.is_paused) == (6, 6, True)
    assert positions.find_current(KEY, before) is None
    positions.resume(KEY)
    assert not state.is_paused


def test_a_lost_position_is_looked_up_as_the_policy_says() -> None:
    positions, state = _at(5)
    positions.seek_to(KEY, OffsetReset(EARLIEST))
    positions.resolve(KEY, state.generation, 0)
    positions.lose(state)
    assert state.position is None
    assert state.start == positions.reset


def test_nothing_is_sought_that_is_not_there() -> None:
    positions = _positions(KEY)
    with pytest.raises(ValueError, match="partition t-1 is not assigned"):
        positions.seek(OTHER, 1)
    with pytest.raises(ValueError, match="no offset -1"):
        positions.seek(KEY, -1)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetched"), st.integers(0, 30), st.integers(0, 5)),
        st.tuples(st.just("stale"), st.integers(0, 30), st.integers(0, 5)),
        st.tuples(st.just("handed"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("seek"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("rewind"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_records_are_handed_out_in_order_and_only_once(steps: list[tuple[str, int, int]]) -> None:
    positions, state = _at(0)
    following = 0
    for step, number, more in steps:
        assert state.position is not None
        generation = state.generation
        if step == "fetched":
            positions.fetched(state, number, number + more, 0)
        elif step == "stale":
            positions.rewind(state)
            assert positions.find_current(KEY, generation) is None
        elif step == "handed":
            assert state.position == following
            following = min(state.position + number, state.fetch_offset)
            positions.handed(state, following)
        elif step == "seek":
            positions.seek(KEY, number)
            following = number
        else:
            positions.rewind(state)
        assert state.position == following
        assert state.position <= state.fetch_offset
        assert state.generation >= generation


def test_a_partition_that_is_read_to_an_offset_is_fetched_no_further() -> None:
    positions, state = _at(5)
    assert not positions.are_read
    positions.seek(KEY, 5, until=8)
    assert not state.is_fetched
    assert positions.fetched(state, 5, 9, 0)
    assert state.is_fetched
    assert not positions.are_read
    positions.handed(state, 9)
    assert positions.are_read
    positions.seek(KEY, 5)
    assert not state.is_fetched
    assert not _positions().are_read
