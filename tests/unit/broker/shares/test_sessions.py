"""Share sessions: their epochs, their partitions, and how many there may be."""

import pytest

from moldau.broker.calls import Endpoint, Peer
from moldau.broker.shares import sessions as module
from moldau.broker.shares.sessions import EPOCH_MAX, SessionKey, ShareSessions
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode

KEY = SessionKey("g", "m")
T = b"t" * 16


def peer() -> Peer:
    return Peer("PLAINTEXT", "host", Endpoint("host", 9092))


def test_epochs_follow_each_other() -> None:
    sessions = ShareSessions()
    session = sessions.begin(KEY, peer(), [(T, 0)], 9)
    for _ in range(3):
        assert sessions.get(KEY, session.epoch) is session
        session.advance()
    session.epoch = EPOCH_MAX
    session.advance()
    assert session.epoch == 1


@pytest.mark.parametrize(
    ("key", "epoch", "code"),
    [
        (KEY, 2, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (KEY, 0, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (SessionKey("g", "n"), 1, ErrorCode.SHARE_SESSION_NOT_FOUND),
        (SessionKey("g", "n"), -1, ErrorCode.SHARE_SESSION_NOT_FOUND),
    ],
)
def test_what_is_refused(key: SessionKey, epoch: int, code: ErrorCode) -> None:
    sessions = ShareSessions()
    sessions.begin(KEY, peer(), [(T, 0)], 9)
    with pytest.raises(Refusal) as refused:
        sessions.get(key, epoch)
    assert refused.value.code == code


def test_partitions_come_and_go_and_take_turns() -> None:
    sessions = ShareSessions()
    session = sessions.begin(KEY, peer(), [(T, 0), (T, 1)], 9)
    sessions.update(session, [(T, 2), (T, 1)], [(T, 0), (T, 7)])
    assert list(session.partitions) == [(T, 1), (T, 2)]
    firsts = set()
    for _ in range(2):
        firsts.add(session.in_turn(session.epoch)[0])
        session.advance()
    assert firsts == {(T, 1), (T, 2)}


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = ShareSessions()
    first = sessions.begin(KEY, peer(), [(T, 0)], 1)
    with pytest.raises(Refusal) as refused:
        sessions.begin(SessionKey("g", "n"), peer(), [], 1)
    assert refused.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    # One's own session makes room for its successor.
    again = sessions.begin(KEY, peer(), [(T, 0)], 1)
    assert again is not first
    monkeypatch.setattr(module, "PARTITIONS_MAX", 3)
    sessions.update(again, [(T, 1), (T, 2)], [])
    with pytest.raises(Refusal):
        sessions.update(again, [(T, 3)], [])
    sessions.update(again, [], [(T, 1)])
    sessions.update(again, [(T, 3)], [])


def test_sessions_go_with_their_connection() -> None:
    sessions = ShareSessions()
    here, there = peer(), peer()
    sessions.begin(KEY, here, [(T, 0)], 9)
    sessions.begin(SessionKey("g", "n"), there, [(T, 0)], 9)
    (gone,) = sessions.remove_all_of(here)
    assert gone.key == KEY
    assert len(sessions) == 1
    assert sessions.has_group("g")
