"""The producers' kernel beside its reference."""

from dataclasses import astuple
from random import Random

import pytest

from moldau._native.producers import ProducerState, ProducerTable, last_sequence_of
from moldau.kernel.ids import ProducerEpoch, ProducerId
from tests.reference import producer_state as reference
from tests.unit.log.batches import data_batch


def values_of(state: ProducerState) -> tuple[object, ...]:
    return (
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_timestamp,
        state.transaction_first_offset,
        state.next_sequence,
        state.batches,
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_state_is_what_the_reference_makes_of_it(seed: int) -> None:
    chance = Random(seed)
    ours = ProducerState(ProducerId(7), ProducerEpoch(0))
    theirs = reference.ReferenceState(7, 0)
    for _ in range(100):
        step = chance.randrange(6)
        if step == 0:
            epoch = chance.randrange(3)
            ours.enter_epoch(ProducerEpoch(epoch))
            theirs.enter_epoch(epoch)
        elif step == 1:
            ours.coordinator_epoch = theirs.coordinator_epoch = chance.randrange(9)
            ours.transaction_first_offset = theirs.transaction_first_offset = chance.randrange(
                -1, 2
            )
        elif step == 2:
            ours, theirs = ours.copy(), theirs.copy()
        else:
            sequence = chance.choice([-1, 0, chance.randrange(1 << 31), (1 << 31) - 1])
            batch = (sequence, chance.randrange(1 << 40), chance.randrange(9), chance.randrange(99))
            ours.add(batch)
            theirs.add(batch)
        assert values_of(ours) == astuple(theirs)
        assert ours.is_expired(50, 10) == theirs.is_expired(50, 10)
        base, delta = chance.randrange(-1, 1 << 31), chance.randrange(1 << 31)
        assert last_sequence_of(base, delta) == reference.last_sequence_of(base, delta)
    assert ours == ProducerState(*astuple(theirs))
    assert ours != ProducerState(ProducerId(8), ProducerEpoch(0))
    assert "ProducerState(7, " in repr(ours)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_not_marked_can_be_forgotten(seed: int) -> None:
    chance = Random(seed)
    table = ProducerTable()
    marked: dict[int, ProducerState] = {}
    for number in range(200):
        step = chance.randrange(10)
        if step == 0:
            table.mark()
            marked = {producer_id: state.copy() for producer_id, state in table.states.items()}
        elif step == 1:
            table.forget_changes()
            assert table.states == marked
        else:
            batch = data_batch(chance.randrange(4), chance.randrange(2), number, offset=number)
            state = table.note(batch)
            assert state is table.states[batch.producer_id]
            assert state.batches[-1] == (number, number, 0, 1000)
            assert state.producer_epoch == batch.producer_epoch


def test_what_follows() -> None:
    table = ProducerTable()
    assert table.follows(data_batch(1, 0, 5))
    state = table.note(data_batch(1, 0, 5))
    assert table.follows(data_batch(1, 0, 6))
    assert not table.follows(data_batch(1, 0, 5))
    assert not table.follows(data_batch(1, 1, 0)), "an epoch that begins is looked at closer"
    state.transaction_first_offset = 3
    assert not table.follows(data_batch(1, 0, 6))
    assert table.follows(data_batch(1, 0, 6, transactional=True))
    with pytest.raises(AssertionError, match="known by an id"):
        table.note(data_batch(-1, 0, 0))
