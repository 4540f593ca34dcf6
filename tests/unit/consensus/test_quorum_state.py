import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.consensus.errors import QuorumStateError
from moldau.consensus.quorum_state import Election, Vote, parse_quorum_state, render_quorum_state
from moldau.kernel.errors import ProtocolError
from tests.strategies import SETTINGS

# As Apache Kafka 4.3.1 wrote it.
KAFKA = (
    b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)
# As its documentation shows the older version.
STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,'
    b'"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}'
)


def test_as_kafka_writes_it() -> None:
    assert parse_quorum_state(KAFKA) == Election(3, leader_id=1)
    assert render_quorum_state(Election(3, leader_id=1), kraft_version=1) == KAFKA


def test_with_voters_from_the_settings() -> None:
    assert parse_quorum_state(STATIC) == Election(2, leader_id=1)
    rendered = render_quorum_state(Election(2, leader_id=1), kraft_version=0, voter_ids=(1,))
    assert rendered == STATIC


ids = st.none() | st.integers(0, 2**31 - 1)
votes = st.none() | st.builds(Vote, st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16))


@SETTINGS
@given(st.builds(Election, st.integers(0, 2**31 - 1), ids, votes))
def test_round_trip(election: Election) -> None:
    assert parse_quorum_state(render_quorum_state(election, kraft_version=1)) == election


@pytest.mark.parametrize(
    "change",
    [
        {"data_version": 2},
        {"data_version": None},
        {"leaderEpoch": "3"},
        {"leaderEpoch": True},
        {"leaderEpoch": 2**31},
        {"leaderId": -2},
        {"votedId": None},
        {"votedDirectoryId": "short"},
        {"votedDirectoryId": 7},
    ],
)
def test_malformed(change: dict[str, object]) -> None:
    data = json.dumps(json.loads(KAFKA) | change).encode()
    with pytest.raises(QuorumStateError, match="quorum-state"):
        parse_quorum_state(data)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"7", b"null", b"\xff", b"[" * 100_000])
def test_not_a_file_of_ours(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="quorum-state"):
        parse_quorum_state(data)
