import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.acknowledgements import GAP, AckBatch, AcknowledgeType, HeldRecords
from moldau.client.errors import AcknowledgementError

KINDS = st.sampled_from([*AcknowledgeType, GAP])


def test_neighbours_go_together_and_what_is_the_same_is_said_once() -> None:
    held = HeldRecords()
    for offset in (1, 2, 3, 5, 6):
        held.hand_out(offset)
    held.accept_all()
    held.say(6, AcknowledgeType.REJECT)
    held.skip([4, 9])
    acks = held.take()
    assert acks.batches == [AckBatch(1, 6, [1, 1, 1, 0, 1, 3]), AckBatch(9, 9, [0])]
    assert acks.offsets == [1, 2, 3, 5, 6]
    assert not held.has_said
    assert not held.has_unsaid


def test_what_is_not_held_cannot_be_acknowledged() -> None:
    held = HeldRecords()
    held.hand_out(1)
    held.skip([2])
    with pytest.raises(AcknowledgementError, match="offset 2 is not held"):
        held.say(2, AcknowledgeType.ACCEPT)
    held.say(1, AcknowledgeType.RELEASE)
    held.say(1, AcknowledgeType.ACCEPT)
    assert held.take().batches == [AckBatch(1, 2, [1, 0])]
    with pytest.raises(AcknowledgementError):
        held.say(1, AcknowledgeType.ACCEPT)


def test_a_renewed_record_is_acknowledged_again_later() -> None:
    held = HeldRecords()
    held.hand_out(1)
    held.say(1, AcknowledgeType.RENEW)
    assert held.take().has_renewals
    assert not held.has_unsaid, "the next poll does not ask for it"
    held.accept_all()
    assert not held.has_said, "nor does it accept it"
    held.say(1, AcknowledgeType.ACCEPT)
    assert held.take() == ([AckBatch(1, 1, [1])], [1], False)


def test_what_is_said_of_a_lost_session_s_records_is_in_vain_and_told() -> None:
    held = HeldRecords()
    for offset in (1, 2, 3, 4):
        held.hand_out(offset)
    held.say(2, AcknowledgeType.RENEW)
    held.take()
    held.say(3, AcknowledgeType.ACCEPT)
    held.lose()
    assert not held.has_unsaid, "the next poll does not ask for them"
    for offset in (1, 2):
        held.say(offset, AcknowledgeType.ACCEPT)
    assert held.has_said
    assert held.take() == ([], [], False)
    assert held.take_in_vain() == [3, 1, 2]
    held.hand_out(4)
    held.say(4, AcknowledgeType.ACCEPT)
    assert held.take().offsets == [4], "it has come again"
    assert held.take_in_vain() == []


def test_what_the_next_poll_accepts_of_a_lost_session_is_told_as_well() -> None:
    held = HeldRecords()
    held.hand_out(1)
    held.lose()
    held.accept_all()
    assert held.take_in_vain() == [1]


@given(said=st.dictionaries(st.integers(0, 40), KINDS))
def test_batches_say_exactly_what_was_said(said: dict[int, int]) -> None:
    held = HeldRecords()
    for offset, kind in said.items():
        if kind == GAP:
            held.skip([offset])
        else:
            held.hand_out(offset)
            held.say(offset, AcknowledgeType(kind))
    read: dict[int, int] = {}
    for first, last, types in held.take().batches:
        count = last - first + 1
        assert len(types) in (1, count)
        assert not read or first > max(read) + 1, "neighbours are in one batch"
        read |= dict(zip(range(first, last + 1), list(types) * (count // len(types)), strict=True))
    assert read == said
