"""Changes of the voters, decided by the leader: one at a time, each in the log (KIP-853)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from moldau.consensus.effects import Answer, ProposalRefused, QuorumPeer
from moldau.consensus.events import PeerRequest, RequestToken
from moldau.consensus.messages import LeaderView, update_answer
from moldau.consensus.roles import Leader
from moldau.consensus.standing import Standing
from moldau.consensus.voters import (
    KRAFT_VERSION_MAX,
    ReplicaKey,
    Voter,
    VoterListener,
    Voters,
    find_voter,
    voters_record,
    with_voter,
    without_voter,
)
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.schema import ZERO_UUID
from moldau.protocol.stored.control_records import KRaftVersionRecord

KRAFT_VERSION = "kraft.version"


@dataclass(slots=True)
class Adding:
    """A voter that is being added: first its levels are asked for, then it stands in the log."""

    token: RequestToken
    voter: Voter
    expires_at: float
    answers_at_commit: bool
    offset: Offset | None = None


@dataclass(slots=True)
class Removing:
    """A voter whose removal waits for its commit."""

    token: RequestToken
    offset: Offset
    expires_at: float


class VoterChanges:
    """The leader's part in who votes."""

    def __init__(
        self,
        standing: Standing,
        view: Callable[[str], LeaderView],
    ) -> None:
        self._standing = standing
        self._view = view
        self._pending: Adding | Removing | None = None
        self._volatile: tuple[Leader, Voters] | None = None
        """Under kraft.version 0: the voters as they introduced themselves to this leader."""

    # Refusals that all changes have in common.

    def _standstill(self) -> tuple[ErrorCode, str] | None:
        """Return why no change can begin now; asking again later helps."""
        standing = self._standing
        leader = standing.role
        assert isinstance(leader, Leader)
        self._expire()
        if self._pending is not None:
            return (
                ErrorCode.REQUEST_TIMED_OUT,
                "Request timed out waiting for leader to handle previous voter change request",
            )
        if leader.high_watermark is None:
            return ErrorCode.REQUEST_TIMED_OUT, (
                "Request timed out waiting for leader to establish HWM and fence previous voter"
                " changes"
            )
        return None

    def _is_uncommitted(self) -> bool:
        """Say whether the last change of voters is not committed: two might share no majority."""
        leader = self._standing.role
        assert isinstance(leader, Leader)
        assert leader.high_watermark is not None
        offset = self._standing.history.offset
        return offset is None or offset >= leader.high_watermark

    def _reconfiguration(self, verb: str) -> tuple[ErrorCode, str] | None:
        standing = self._standing
        if (stands := self._standstill()) is not None:
            return stands
        if standing.history.kraft_version == 0:
            return (
                ErrorCode.UNSUPPORTED_VERSION,
                f"Cluster doesn't support {verb} voter because the {KRAFT_VERSION} feature is 0",
            )
        if self._is_uncommitted():
            return ErrorCode.REQUEST_TIMED_OUT, (
                "Request timed out waiting for voters to commit the latest voter change at"
                f" {standing.history.offset}"
            )
        return None

    # Adding.

    def answer_add(self, event: PeerRequest, request: AddRaftVoterRequest) -> None:
        """Begin to add a voter, or refuse."""
        standing = self._standing
        if (refused := self._add_refusal(request)) is not None:
            error, text = refused
            response = AddRaftVoterResponse(error_code=error, error_message=text or None)
            standing.effects.append(Answer(event.token, response))
            return
        voter = Voter(
            request.voter_id,
            request.voter_directory_id,
            tuple(VoterListener(each.name, each.host, each.port) for each in request.listeners),
        )
        expires_at = standing.now + standing.settings.answer_timeout_ms / 1000
        self._pending = Adding(event.token, voter, expires_at, request.ack_when_committed)
        standing.send(
            self._peer_of(voter),
            ApiVersionsRequest(client_software_name="moldau", client_software_version="1"),
        )

    def _peer_of(self, voter: Voter) -> QuorumPeer:
        name = self._standing.settings.listener
        [found, *_] = [each for each in voter.listeners if each.name == name]
        return QuorumPeer(voter.node_id, found.host, found.port)

    def _add_refusal(  # noqa: PLR0911 - in Kafka's order
        self, request: AddRaftVoterRequest
    ) -> tuple[ErrorCode, str] | None:
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID, (
                f"Expecting cluster id {standing.settings.cluster_id}, got {request.cluster_id}"
            )
        if (error := self._standing.leader_refusal(standing.epoch)) is not None:
            return error, ""
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
            return ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
        if all(each.name != standing.settings.listener for each in request.listeners):
            return ErrorCode.INVALID_REQUEST, (
                "Add voter request didn't include the endpoint for the default listener"
                f" {standing.settings.listener}"
            )
        if (stands := self._reconfiguration("adding")) is not None:
            return stands
        if find_voter(standing.voters, request.voter_id) is not None:
            return ErrorCode.DUPLICATE_VOTER, (
                f"The voter id for {request.voter_id} is already part of the set of voters"
            )
        if not standing.requests.is_ready(request.voter_id, standing.now):
            return ErrorCode.REQUEST_TIMED_OUT, (
                f"New voter {request.voter_id} is not ready to receive requests"
            )
        return None

    def note_api_versions(self, node_id: int, response: ApiVersionsResponse) -> None:
        """The new voter says what it can; if it has caught up as well, it votes from now on."""
        standing = self._standing
        leader = standing.role
        pending = self._pending
        if not isinstance(pending, Adding) or pending.voter.node_id != node_id:
            return
        if not isinstance(leader, Leader) or pending.offset is not None:
            return
        if response.error_code != ErrorCode.NONE:
            self._finish_adding(
                ErrorCode.REQUEST_TIMED_OUT,
                "Aborted add voter operation since API_VERSIONS returned an error"
                f" {response.error_code}",
            )
            return
        level = standing.history.kraft_version
        feature = next(
            (each for each in response.supported_features if each.name == KRAFT_VERSION), None
        )
        if feature is None or not feature.min_version <= level <= feature.max_version:
            self._finish_adding(
                ErrorCode.INVALID_REQUEST,
                f"Aborted add voter operation for {node_id} since its {KRAFT_VERSION} range"
                f" doesn't support the finalized version {level}",
            )
            return
        progress = leader.progress.get(pending.voter.key)
        if progress is None or progress.caught_up is None:
            self._finish_adding(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Aborted add voter operation for {node_id} since it is lagging behind",
            )
            return
        voter = replace(
            pending.voter,
            kraft_version_min=feature.min_version,
            kraft_version_max=feature.max_version,
        )
        record = voters_record(with_voter(standing.voters, voter))
        pending.offset = standing.append_control([record])
        if not pending.answers_at_commit:
            standing.effects.append(Answer(pending.token, AddRaftVoterResponse(error_message=None)))

    def add_failed(self, node_id: int) -> None:
        """The new voter cannot be reached."""
        pending = self._pending
        if isinstance(pending, Adding) and pending.voter.node_id == node_id:
            self._finish_adding(
                ErrorCode.REQUEST_TIMED_OUT,
                "Aborted add voter operation since API_VERSIONS was not answered",
            )

    def _finish_adding(self, error: ErrorCode, text: str | None = None) -> None:
        pending = self._pending
        assert isinstance(pending, Adding)
        self._pending = None
        if pending.answers_at_commit or pending.offset is None:
            response = AddRaftVoterResponse(error_code=error, error_message=text)
            self._standing.effects.append(Answer(pending.token, response))

    # Removing.

    def answer_remove(self, event: PeerRequest, request: RemoveRaftVoterRequest) -> None:
        """Remove a voter, this one perhaps, or refuse."""
        standing = self._standing
        if (refused := self._remove_refusal(request)) is not None:
            error, text = refused
            response = RemoveRaftVoterResponse(error_code=error, error_message=text or None)
            standing.effects.append(Answer(event.token, response))
            return
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        remaining = without_voter(standing.voters, key)
        assert remaining is not None, "the refusals have seen to it"
        offset = standing.append_control([voters_record(remaining)])
        expires_at = standing.now + standing.settings.answer_timeout_ms / 1000
        self._pending = Removing(event.token, offset, expires_at)

    def _remove_refusal(self, request: RemoveRaftVoterRequest) -> tuple[ErrorCode, str] | None:
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID, (
                f"Expecting cluster id {standing.settings.cluster_id}, got {request.cluster_id}"
            )
        if (error := self._standing.leader_refusal(standing.epoch)) is not None:
            return error, ""
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
            return ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
        if (stands := self._reconfiguration("removing")) is not None:
            return stands
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        if without_voter(standing.voters, key) is None:
            return ErrorCode.VOTER_NOT_FOUND, (
                f"Cannot remove voter {request.voter_id} from the set of voters"
                f" {[voter.node_id for voter in standing.voters]}"
            )
        return None

    # Updating.

    def answer_update(self, event: PeerRequest, request: UpdateRaftVoterRequest) -> None:
        """A voter says where it is now, and what it can."""
        error = self._update_refusal(request)
        if error is None:
            error = self._update(request)
        response = update_answer(self._view(event.listener), error)
        self._standing.effects.append(Answer(event.token, response))

    def _update_refusal(  # noqa: PLR0911 - in Kafka's order
        self, request: UpdateRaftVoterRequest
    ) -> ErrorCode | None:
        standing = self._standing
        feature = request.kraft_version_feature
        if request.cluster_id not in (None, standing.settings.cluster_id):
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if (error := self._standing.leader_refusal(request.current_leader_epoch)) is not None:
            return error
        level = standing.history.kraft_version
        if (
            request.voter_id < 0
            or request.voter_directory_id == ZERO_UUID
            or all(each.name != standing.settings.listener for each in request.listeners)
            or not 0 <= feature.min_supported_version <= feature.max_supported_version
        ):
            return ErrorCode.INVALID_REQUEST
        if (stands := self._standstill()) is not None:
            return stands[0]
        if level and self._is_uncommitted():
            return ErrorCode.REQUEST_TIMED_OUT
        if not feature.min_supported_version <= level <= feature.max_supported_version:
            return ErrorCode.INVALID_REQUEST
        return None

    def _update(self, request: UpdateRaftVoterRequest) -> ErrorCode:
        standing = self._standing
        feature = request.kraft_version_feature
        voter = Voter(
            request.voter_id,
            request.voter_directory_id,
            tuple(VoterListener(each.name, each.host, each.port) for each in request.listeners),
            feature.min_supported_version,
            feature.max_supported_version,
        )
        if standing.history.kraft_version == 0:
            introduced = self._introduced()
            if find_voter(introduced, voter.node_id) is None:
                return ErrorCode.VOTER_NOT_FOUND
            leader = standing.role
            assert isinstance(leader, Leader)
            self._volatile = (leader, with_voter(introduced, voter))
        else:
            known = find_voter(standing.voters, voter.node_id)
            if known is None or known.key != voter.key:
                return ErrorCode.VOTER_NOT_FOUND
            standing.append_control([voters_record(with_voter(standing.voters, voter))])
        standing.note_followed(voter.key)
        return ErrorCode.NONE

    # The step from kraft.version 0 to 1.

    def _introduced(self) -> Voters:
        """Return the voters with what this leader has heard of each."""
        if self._volatile is None or self._volatile[0] is not self._standing.role:
            return with_voter(self._standing.voters, self._standing.local)
        return self._volatile[1]

    def upgrade(self) -> None:
        """Write the voters to the log for the first time."""
        standing = self._standing
        if standing.history.kraft_version >= KRAFT_VERSION_MAX:
            return
        voters = self._introduced()
        if missing := [each.node_id for each in voters if each.directory_id == ZERO_UUID]:
            names = ", ".join(map(str, missing))
            text = f"the directories of voters {names} are not known yet"
            standing.effects.append(ProposalRefused(text))
            return
        if old := [each.node_id for each in voters if each.kraft_version_max < KRAFT_VERSION_MAX]:
            names = ", ".join(map(str, old))
            text = f"voters {names} do not support {KRAFT_VERSION} {KRAFT_VERSION_MAX}"
            standing.effects.append(ProposalRefused(text))
            return
        level = KRaftVersionRecord(kraft_version=KRAFT_VERSION_MAX)
        standing.append_control([level, voters_record(voters)])

    # Commit, time, and the end.

    def committed(self, high_watermark: Offset) -> bool:
        """Answer what is committed now; say whether this node has removed itself by it."""
        pending = self._pending
        match pending:
            case Adding(offset=offset) if offset is not None and high_watermark > offset:
                self._finish_adding(ErrorCode.NONE)
            case Removing(token, offset) if high_watermark > offset:
                self._pending = None
                response = RemoveRaftVoterResponse(error_message=None)
                self._standing.effects.append(Answer(token, response))
            case _:
                pass
        changed_at = self._standing.history.offset
        is_committed = changed_at is None or high_watermark > changed_at
        return is_committed and not self._standing.is_voter

    def _expire(self) -> None:
        pending = self._pending
        if pending is None or pending.expires_at > self._standing.now:
            return
        match pending:
            case Adding():
                self._finish_adding(ErrorCode.REQUEST_TIMED_OUT)
            case Removing(token):
                self._pending = None
                response = RemoveRaftVoterResponse(
                    error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=None
                )
                self._standing.effects.append(Answer(token, response))

    def advance(self) -> float:
        """Give up what takes too long, and return when to come back."""
        self._expire()
        return math.inf if self._pending is None else self._pending.expires_at

    def left(self) -> None:
        """This node leads no more: how the change ends, it cannot tell."""
        pending, self._pending = self._pending, None
        self._volatile = None
        match pending:
            case Adding(token, offset=offset, answers_at_commit=waits) if waits or offset is None:
                refused = AddRaftVoterResponse(
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=None
                )
                self._standing.effects.append(Answer(token, refused))
            case Removing(token):
                response = RemoveRaftVoterResponse(
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=None
                )
                self._standing.effects.append(Answer(token, response))
            case _:
                pass
