"""Elections: votes asked for and granted, epochs that begin and end."""

import math

from moldau.consensus import messages
from moldau.consensus.effects import Answer
from moldau.consensus.events import PeerRequest
from moldau.consensus.messages import LeaderHint, LeaderView
from moldau.consensus.quorum_state import Vote
from moldau.consensus.roles import (
    Candidate,
    Endpoints,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
    is_vote_for,
)
from moldau.consensus.standing import Cause, Standing
from moldau.consensus.voters import ReplicaKey, VoterListener, find_voter
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from moldau.protocol.messages.vote import VoteRequest, VoteResponse


class Elections:
    """What a voter does, whatever its role is, so that an epoch has one leader."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def view(self, listener: str) -> LeaderView:
        """Return what an answer says of the leader."""
        standing = self._standing
        endpoints = standing.leader_endpoints()
        endpoint = next((each for each in endpoints if each.name == listener), None)
        return LeaderView(standing.leader_id, standing.epoch, endpoint)

    def hear(self, epoch: LeaderEpoch, leader_id: int | None, endpoints: Endpoints) -> None:
        """Another node says who leads in an epoch that is not older than ours."""
        standing = self._standing
        if leader_id == standing.local.node_id:
            if isinstance(standing.role, Leader) and epoch == standing.epoch:
                return
            # This node with an earlier disk, or before its restart: it does not lead any more.
            leader_id = None
        known = standing.leader_id
        if epoch > standing.epoch:
            if leader_id is not None and endpoints:
                standing.become_follower(epoch, leader_id, endpoints, Cause.LEADER_HEARD)
            else:
                standing.become_unattached(epoch, Cause.HIGHER_EPOCH, leader_id)
        elif leader_id is None:
            return
        elif known is not None and known != leader_id:
            standing.end_node(
                f"epoch {epoch} has two leaders, {known} and {leader_id}: votes were forgotten"
            )
        elif endpoints and (known is None or len(endpoints) > len(standing.leader_endpoints())):
            standing.become_follower(epoch, leader_id, endpoints, Cause.LEADER_HEARD)

    def hear_hint(self, hint: LeaderHint) -> bool | None:
        """Take in what an answer says of the leader.

        True: there is nothing else in it. False: it failed, ask again later. None: go on.
        """
        standing = self._standing
        error, leader_id, epoch, endpoints = hint
        if not endpoints and leader_id is not None:
            endpoints = standing.endpoints_of(leader_id)
        if epoch < standing.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > standing.epoch or error in (
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ):
            self.hear(epoch, leader_id, endpoints)
            return True
        if leader_id is not None and standing.leader_id is None:
            self.hear(epoch, leader_id, endpoints)
            return None if error is ErrorCode.NONE else True
        if error is ErrorCode.BROKER_NOT_AVAILABLE:
            return False
        if error is ErrorCode.INVALID_VOTER_KEY:
            return True
        return None

    # Requests.

    def _voter_refusal(self, node_id: int, epoch: int) -> ErrorCode | None:
        if epoch < self._standing.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if node_id < 0:
            return ErrorCode.INVALID_REQUEST
        return None

    def _is_meant(self, voter_id: int, directory_id: bytes) -> bool:
        """Say whether a request was meant for this node: it may say for which one it is."""
        if voter_id < 0:
            return True
        return self._standing.key.is_same(ReplicaKey(voter_id, directory_id))

    def answer_vote(self, event: PeerRequest, request: VoteRequest) -> None:
        """Grant a vote, or refuse it."""
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            refused = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
            standing.effects.append(Answer(event.token, refused))
            return
        asked = messages.vote_partition(request)
        if asked is None:
            refused = VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
            standing.effects.append(Answer(event.token, refused))
            return
        candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
        last = (LeaderEpoch(asked.last_offset_epoch), Offset(asked.last_offset))
        # A pre-vote's epoch is not yet another one, so the log may have records of it.
        newest = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
        error = ErrorCode.NONE
        granted = False
        if min(last) < 0 or last[0] > newest:
            error = ErrorCode.INVALID_REQUEST
        elif (refusal := self._voter_refusal(asked.replica_id, asked.replica_epoch)) is not None:
            error = refusal
        else:
            if asked.replica_epoch > standing.epoch:
                epoch = LeaderEpoch(asked.replica_epoch)
                standing.become_unattached(epoch, Cause.HIGHER_EPOCH)
            if not self._is_meant(request.voter_id, asked.voter_directory_id):
                error = ErrorCode.INVALID_VOTER_KEY
            elif asked.pre_vote:
                granted = self._would_grant(last)
            else:
                granted = self._grant(candidate, last)
        view = self.view(event.listener)
        response = messages.vote_answer(view, error, event.version, granted=granted)
        standing.effects.append(Answer(event.token, response))

    def _is_up_to_date(self, last: tuple[LeaderEpoch, Offset]) -> bool:
        return last >= (self._standing.last_epoch, self._standing.end)

    def _would_grant(self, last: tuple[LeaderEpoch, Offset]) -> bool:
        match self._standing.role:
            case Leader():
                return False
            case Follower(has_fetched=has_fetched):
                # Its leader lives: KIP-996 keeps a cut-off node from disturbing the others.
                return not has_fetched and self._is_up_to_date(last)
            case _:
                return self._is_up_to_date(last)

    def _grant(self, candidate: ReplicaKey, last: tuple[LeaderEpoch, Offset]) -> bool:
        """Vote, at most once in an epoch; the disk knows before the candidate does."""
        standing = self._standing
        role = standing.role
        match role:
            case Unattached(vote=vote) | Prospective(vote=vote) if vote is not None:
                return is_vote_for(vote, candidate)
            case Unattached(leader_id=None) | Prospective(leader_id=None):
                if not self._is_up_to_date(last):
                    return False
                standing.note_vote(Vote(candidate.node_id, candidate.directory_id))
                return True
            case _:
                return False

    def answer_begin(self, event: PeerRequest, request: BeginQuorumEpochRequest) -> None:
        """A node says that it leads."""
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            refused = BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
            standing.effects.append(Answer(event.token, refused))
            return
        told = messages.begin_partition(request)
        if told is None:
            refused = BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
            standing.effects.append(Answer(event.token, refused))
            return
        error = self._voter_refusal(told.leader_id, told.leader_epoch)
        if error is None:
            endpoints = tuple(
                VoterListener(each.name, each.host, each.port) for each in request.leader_endpoints
            ) or standing.endpoints_of(told.leader_id)
            self.hear(LeaderEpoch(told.leader_epoch), told.leader_id, endpoints)
            is_meant = self._is_meant(request.voter_id, told.voter_directory_id)
            error = ErrorCode.NONE if is_meant else ErrorCode.INVALID_VOTER_KEY
        response = messages.begin_answer(self.view(event.listener), error, event.version)
        standing.effects.append(Answer(event.token, response))

    def answer_end(self, event: PeerRequest, request: EndQuorumEpochRequest) -> None:
        """The leader resigns; the voter that has fetched most goes first."""
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            refused = EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
            standing.effects.append(Answer(event.token, refused))
            return
        told = messages.end_partition(request)
        if told is None:
            refused = EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
            standing.effects.append(Answer(event.token, refused))
            return
        error = self._voter_refusal(told.leader_id, told.leader_epoch)
        if error is None:
            error = ErrorCode.NONE
            endpoints = tuple(
                VoterListener(each.name, each.host, each.port) for each in request.leader_endpoints
            ) or standing.endpoints_of(told.leader_id)
            self.hear(LeaderEpoch(told.leader_epoch), told.leader_id, endpoints)
            role = standing.role
            if isinstance(role, Follower) and role.leader_id == told.leader_id:
                successors = messages.successors_of(told)
                role.fetch_by = standing.now + self._election_backoff_ms(successors) / 1000
        response = messages.end_answer(self.view(event.listener), error, event.version)
        standing.effects.append(Answer(event.token, response))

    def _election_backoff_ms(self, successors: list[ReplicaKey]) -> int:
        """Return how long to leave it to others: the first not at all, then twice as long each."""
        key = self._standing.key
        place = next(
            (place for place, each in enumerate(successors) if each.is_same(key)), len(successors)
        )
        longest = self._standing.settings.backoff_max_ms
        if place == 0:
            # With no successors named at all, as by a leader that has restarted, all go at once.
            return 0
        if place >= len(successors):
            return longest
        return min(longest, (longest >> (len(successors) - 1)) << (place - 1))

    # Answers.

    def note_vote_answer(self, voter_id: int, response: VoteResponse) -> None:
        """Count a vote."""
        granted = response.topics[0].partitions[0].vote_granted
        standing = self._standing
        match standing.role:
            case Prospective(ballots=ballots):
                ballots.note(voter_id, granted=granted)
                if ballots.is_won:
                    standing.become_candidate(Cause.WON)
                elif ballots.is_lost:
                    self._give_up(Cause.LOST)
            case Candidate(ballots=ballots):
                ballots.note(voter_id, granted=granted)
                if ballots.is_won:
                    standing.become_leader()
            case _:
                pass

    def _give_up(self, cause: Cause) -> None:
        """Go back to the leader that was known, in the same epoch."""
        standing = self._standing
        role = standing.role
        assert isinstance(role, Prospective), "only a prospective candidate gives up"
        if role.leader_id is not None and role.endpoints:
            standing.become_follower(role.epoch, role.leader_id, role.endpoints, cause)
            assert isinstance(standing.role, Follower)
            standing.role.may_doubt = False
        else:
            standing.become_unattached(role.epoch, cause)

    def note_unknown_pre_vote(self) -> None:
        """A voter is older than pre-votes: this one stands without them."""
        if isinstance(self._standing.role, Prospective):
            self._standing.become_candidate(Cause.NOT_KNOWN)

    def note_told(self, voter_id: int) -> None:
        """A voter knows that this node leads no more."""
        if isinstance(self._standing.role, Resigned):
            self._standing.role.untold.discard(voter_id)

    # Time.

    def advance(self) -> float:
        """Do what is due, and return when to come back; a node that stops stands no more."""
        standing = self._standing
        role = standing.role
        assert not isinstance(role, Leader | Follower), "they have no elections"
        is_stopping = standing.stop_by is not None
        if role.election_at <= standing.now and not is_stopping:
            self._time_out(role)
            return standing.now
        match role:
            case Prospective(ballots=ballots):
                self._ask_for_votes(ballots.missing, pre_vote=True)
            case Candidate(ballots=ballots):
                if not ballots.is_lost:
                    self._ask_for_votes(ballots.missing, pre_vote=False)
            case Resigned(untold=untold):
                self._tell_resignation(role, sorted(untold))
            case Unattached():
                pass
        return math.inf if is_stopping else role.election_at

    def _time_out(self, role: Unattached | Prospective | Candidate | Resigned) -> None:
        match role:
            case Unattached() | Candidate():
                self._standing.become_prospective(Cause.ELECTION_TIMEOUT)
            case Prospective():
                self._give_up(Cause.ELECTION_TIMEOUT)
            case Resigned():
                epoch = LeaderEpoch(role.epoch + 1)
                self._standing.become_unattached(epoch, Cause.ELECTION_TIMEOUT)

    def _ask_for_votes(self, voter_ids: list[int], *, pre_vote: bool) -> None:
        """Ask with what a crash keeps of the log: a vote must not outlive its reason."""
        standing = self._standing
        end = min(standing.end, standing.log.synced_end)
        last = (standing.log.epoch_at(end), end)
        for voter_id in voter_ids:
            voter = find_voter(standing.voters, voter_id)
            peer = standing.find_peer(voter_id)
            if (
                voter is None
                or peer is None
                or not standing.requests.is_ready(voter_id, standing.now)
            ):
                continue
            request = messages.vote_request(
                standing.settings.cluster_id,
                standing.key,
                standing.epoch,
                voter.key,
                last,
                pre_vote=pre_vote,
            )
            standing.send(peer, request)

    def _tell_resignation(self, role: Resigned, voter_ids: list[int]) -> None:
        standing = self._standing
        for voter_id in voter_ids:
            peer = standing.find_peer(voter_id)
            if peer is not None and standing.requests.is_ready(voter_id, standing.now):
                request = messages.end_request(
                    standing.settings.cluster_id, standing.local, role.epoch, role.successors
                )
                standing.send(peer, request)
