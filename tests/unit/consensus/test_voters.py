from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moldau.consensus.voters import (
    IN_SNAPSHOT,
    ReplicaKey,
    Voter,
    VoterHistory,
    VoterListener,
    forget_directories,
    is_voter,
    voters_record,
    with_voter,
    without_voter,
)
from moldau.protocol.stored.control_records import KRaftVersionRecord
from tests.strategies import SETTINGS


def voter(node_id: int, directory: int = 1) -> Voter:
    listener = VoterListener("CONTROLLER", f"n{node_id}", 9093)
    return Voter(node_id, bytes([directory] * 16), (listener,))


def test_voters_are_told_by_their_directory() -> None:
    voters = (voter(1), voter(2))
    assert is_voter(voters, voter(2).key)
    assert not is_voter(voters, voter(2, directory=9).key)
    assert is_voter(forget_directories(voters), voter(2, directory=9).key)
    assert not is_voter(voters, ReplicaKey(2))
    assert ReplicaKey(2).is_same(voter(2).key)
    assert not ReplicaKey(1).is_same(voter(2).key)


def test_one_voter_more_and_less() -> None:
    voters = (voter(1), voter(3))
    assert with_voter(voters, voter(2)) == (voter(1), voter(2), voter(3))
    assert with_voter(voters, replace(voter(3), kraft_version_max=2))[1].kraft_version_max == 2
    assert without_voter(voters, voter(1).key) == (voter(3),)
    assert without_voter(voters, voter(1, directory=9).key) is None
    assert without_voter((voter(1),), voter(1).key) is None


@SETTINGS
@given(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 9))
def test_truncation_goes_back_to_the_voters_before(sizes: list[int], to: int) -> None:
    history = VoterHistory((voter(7),))
    history.replay(KRaftVersionRecord(kraft_version=1), IN_SNAPSHOT)
    expected = history.latest
    for offset, size in enumerate(sizes):
        if size:
            history.replay(voters_record(tuple(voter(each) for each in range(size))), offset)
        if offset < to:
            expected = history.latest
    assert history.at(to) == expected
    history.truncate(to)
    assert history.latest == expected


def test_what_no_truncation_goes_back_to_is_forgotten() -> None:
    history = VoterHistory()
    for offset in range(10):
        history.replay(voters_record((voter(offset),)), offset)
    history.forget_before(5)
    assert [history.at(end).voters[0].node_id for end in (5, 6, 10)] == [4, 5, 9]


def test_a_snapshot_begins_anew() -> None:
    history = VoterHistory((voter(7),))
    history.replay(voters_record((voter(1),)), 3)
    history.restart([KRaftVersionRecord(kraft_version=1), voters_record((voter(2),))], 40)
    assert (history.offset, history.kraft_version, history.voters) == (39, 1, (voter(2),))
