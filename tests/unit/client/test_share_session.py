from moldau.client.acknowledgements import AckBatch, Acks
from moldau.client.share_session import EPOCH_MAX, ShareSessionHandler

A, B = b"a" * 16, b"b" * 16
ACKS = Acks([AckBatch(0, 0, [1])], [0], has_renewals=False)


def test_everything_is_said_at_first_and_the_difference_later() -> None:
    session = ShareSessionHandler()
    assert not session.is_open
    assert session.next_fetch([(A, 0), (A, 1)], {}) == (0, {A: {0: None, 1: None}}, {})
    session.answered()
    assert session.is_open
    assert session.next_fetch([(A, 0), (A, 1)], {}) == (1, {}, {})
    session.answered()
    assert session.next_fetch([(A, 0), (B, 2)], {}) == (2, {B: {2: None}}, {A: [1]})


def test_acknowledgements_travel_with_partitions_that_are_not_wanted_any_more() -> None:
    session = ShareSessionHandler()
    session.next_fetch([(A, 0)], {})
    session.answered()
    assert session.next_fetch([], {(A, 0): ACKS}) == (1, {A: {0: ACKS}}, {A: [0]})


def test_a_lost_session_begins_anew() -> None:
    session = ShareSessionHandler()
    session.next_fetch([(A, 0)], {})
    session.answered()
    session.lost()
    assert session.next_fetch([(A, 0)], {}) == (0, {A: {0: None}}, {})


def test_epochs_begin_again_with_one() -> None:
    session = ShareSessionHandler()
    session.epoch = EPOCH_MAX
    session.answered()
    assert session.epoch == 1
