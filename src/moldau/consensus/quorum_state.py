"""The quorum-state file: the epoch, and whom this node elected or follows in it."""

import json
from dataclasses import dataclass
from typing import Any, Final

from moldau.consensus.errors import QuorumStateError
from moldau.kernel.uuid_text import uuid_from_text, uuid_to_text

QUORUM_STATE_FILE: Final = "quorum-state"

_NOBODY: Final = -1
_NO_DIRECTORY: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class Vote:
    """Whom a node voted for: a node with the directory that it had then."""

    node_id: int
    directory_id: bytes = _NO_DIRECTORY


@dataclass(frozen=True, slots=True)
class Election:
    """What a node must not forget: an epoch never goes back, and has one vote."""

    epoch: int
    leader_id: int | None = None
    vote: Vote | None = None


def render_quorum_state(
    election: Election, *, kraft_version: int, voter_ids: tuple[int, ...] = ()
) -> bytes:
    """Return the file's content, one line of JSON.

    With kraft.version 0 the voters are in the file instead of the log.
    """
    leader_id = _NOBODY if election.leader_id is None else election.leader_id
    voted_id = _NOBODY if election.vote is None else election.vote.node_id
    state: dict[str, Any] = {
        "leaderId": leader_id,
        "leaderEpoch": election.epoch,
        "votedId": voted_id,
    }
    if kraft_version == 0:
        voters = [{"voterId": voter_id} for voter_id in voter_ids]
        state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": voters}
    else:
        directory_id = _NO_DIRECTORY if election.vote is None else election.vote.directory_id
        state["votedDirectoryId"] = uuid_to_text(directory_id)
    state["data_version"] = min(kraft_version, 1)
    return json.dumps(state, separators=(",", ":")).encode()


def parse_quorum_state(data: bytes) -> Election:
    """Read the file's content in either version; `QuorumStateError`."""
    try:
        state = json.loads(data)
        version = state["data_version"]
        if version not in (0, 1):
            raise QuorumStateError(f"quorum-state has version {version}; 0 and 1 are known here")
        epoch, leader_id, voted_id = (
            _number(state[name]) for name in ("leaderEpoch", "leaderId", "votedId")
        )
        text = state["votedDirectoryId"] if version == 1 else uuid_to_text(_NO_DIRECTORY)
        directory_id = uuid_from_text(text)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, QuorumStateError):
            raise
        raise QuorumStateError(f"quorum-state cannot be read: {error!r}") from None
    return Election(
        epoch=epoch,
        leader_id=None if leader_id == _NOBODY else leader_id,
        vote=None if voted_id == _NOBODY else Vote(voted_id, directory_id),
    )


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value < 2**31:
        raise QuorumStateError(f"quorum-state has {value!r} instead of a number")
    return value
