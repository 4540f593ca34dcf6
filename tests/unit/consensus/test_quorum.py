import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.consensus.quorum import Ballots, CheckQuorum, end_of_majority, majority
from tests.strategies import SETTINGS


@pytest.mark.parametrize(
    ("count", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)]
)
def test_majorities(count: int, needed: int) -> None:
    assert majority(count) == needed


@SETTINGS
@given(st.lists(st.integers(-1, 9), min_size=1, max_size=7))
def test_a_majority_has_reached_the_end_and_none_a_higher_one(ends: list[int]) -> None:
    end = end_of_majority(ends)
    assert sum(each >= end for each in ends) >= majority(len(ends))
    assert sum(each > end for each in ends) < majority(len(ends))


@SETTINGS
@given(st.integers(1, 7), st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=12))
def test_an_election_is_won_or_lost_but_not_both(count: int, votes: list[tuple[int, bool]]) -> None:
    ballots = Ballots(range(1, count + 1))
    first: dict[int, bool] = {}
    for voter_id, granted in votes:
        ballots.note(voter_id, granted=granted)
        if voter_id <= count:
            first.setdefault(voter_id, granted)
    granting = sum(first.values())
    refusing = len(first) - granting
    assert ballots.granting == sorted(each for each, granted in first.items() if granted)
    assert ballots.missing == [each for each in range(1, count + 1) if each not in first]
    assert ballots.is_won == (granting >= majority(count))
    assert ballots.is_lost == (count - refusing < majority(count))
    assert not (ballots.is_won and ballots.is_lost)


def test_a_leader_counts_for_itself_while_it_votes() -> None:
    check = CheckQuorum(3.0, 0.0)
    check.note(2, [1, 2, 3], 1, 1.0)
    assert check.deadline == 4.0
    check.note(2, [2, 3], 1, 2.0)  # the leader is removed: both others have to fetch
    assert check.deadline == 4.0
    check.note(9, [2, 3], 1, 2.0)
    check.note(3, [2, 3], 1, 2.5)
    assert check.deadline == 5.5


def test_one_voter_that_fetches_often_is_no_majority() -> None:
    check = CheckQuorum(3.0, 0.0)
    for second in range(9):
        check.note(2, [1, 2, 3, 4, 5], 1, second)
    assert check.deadline == 3.0
    check.note(3, [1, 2, 3, 4, 5], 1, 9.0)
    assert check.deadline == 12.0
