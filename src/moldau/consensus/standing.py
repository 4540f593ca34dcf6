"""A member's standing in the quorum: its role, and every transition between roles."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from moldau._native.records import Record
from moldau.consensus.effects import (
    AppendBatches,
    EndNode,
    LeaderChanged,
    QuorumCommitted,
    QuorumEffect,
    QuorumPeer,
    RoleChanged,
    SaveElection,
    TruncateLog,
    VotersChanged,
    WakeAt,
)
from moldau.consensus.events import QuorumLog
from moldau.consensus.quorum import Ballots, CheckQuorum
from moldau.consensus.quorum_state import Election, Vote
from moldau.consensus.requests import Requests
from moldau.consensus.roles import (
    Candidate,
    Endpoints,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    find_leader_id,
    is_vote_for,
    vote_of,
)
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import (
    IN_SNAPSHOT,
    ReplicaKey,
    Voter,
    VoterHistory,
    Voters,
    find_voter,
    is_voter,
    voters_record,
    with_voter,
)
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Message
from moldau.protocol.stored.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from moldau.records.batch import build_batch
from moldau.records.control import QuorumValue, build_quorum_batch


class Cause(StrEnum):
    """Why a role ended."""

    STARTED = "started"
    ONLY_VOTER = "only voter"
    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout"
    LEADER_REFUSED = "leader refused"
    HIGHER_EPOCH = "higher epoch"
    LEADER_HEARD = "leader heard"
    WON = "won"
    LOST = "lost"
    NOT_KNOWN = "pre-vote not known"
    NO_MAJORITY = "no majority"
    RESIGNED = "resigned"
    REMOVED = "removed"
    STOPPED = "stopped"
    STORAGE_FAILED = "storage failed"


class Standing:
    """What all parts of a member share; roles change here and nowhere else.

    | from | cause | to |
    |---|---|---|
    | Unattached | started: led the saved epoch | Resigned |
    | Unattached | started: voted for itself in it | Candidate |
    | Unattached | started: knows its leader and where that is | Follower |
    | Unattached, Follower, Resigned | only voter | Candidate, then Leader |
    | Unattached | election timeout | Prospective |
    | Follower | fetch timeout | Prospective |
    | Follower | leader refused (where the settings say so) | Prospective |
    | Candidate | election timeout | Prospective |
    | Prospective | won, or pre-vote not known to a voter | Candidate |
    | Prospective | lost, or election timeout; a leader was known | Follower of it |
    | Prospective | lost, or election timeout; no leader was known | Unattached |
    | Candidate | won | Leader |
    | Leader | stopped, resigned, no majority, removed, storage failed | Resigned |
    | Resigned | election timeout | Unattached, of the next epoch |
    | each | higher epoch | Unattached |
    | each | leader heard, of a higher epoch | Follower |
    | Unattached, Prospective, Candidate | leader heard, of the same epoch | Follower |

    A node without a vote is only Unattached or Follower, and no timeout moves it. A candidate
    that has lost waits for its timeout. What is to survive a crash of a new role is saved before
    anything is told of it: `finish` puts `SaveElection` in front.
    """

    def __init__(
        self,
        local: Voter,
        settings: QuorumSettings,
        history: VoterHistory,
        log: QuorumLog,
        saved: Election | None,
        chance: Callable[[], float],
    ) -> None:
        self.local = local
        self.settings = settings
        self.history = history
        self.log = log
        self.requests = Requests(settings)
        self.role: Role = Unattached(LeaderEpoch(saved.epoch if saved else 0), math.inf)
        self.high_watermark: Offset | None = None
        self.stop_by: float | None = None
        """When to stop waiting for another leader, once the node shuts down."""
        self.has_ended = False
        self._chance = chance
        self._saved = (saved, history.kraft_version)
        self._told: tuple[int | None, int] = (None, self.role.epoch)
        self._voters_told = history.latest
        self._timer = math.inf
        self.effects: list[QuorumEffect] = []
        self.now = 0.0
        self.instant = Instant(0.0, 0)
        self.end = log.end_offset
        """The log's end, with what this event appends."""
        self.last_epoch = log.last_epoch

    # Around an event.

    def begin(self, now: Instant) -> None:
        """An event comes in."""
        self.instant = now
        self.now = now.monotonic
        self.effects = []
        self.end = self.log.end_offset
        self.last_epoch = self.log.last_epoch

    def finish(self, next_at: float) -> list[QuorumEffect]:
        """Return the effects: first what must not be forgotten, last when to come back."""
        effects = self.effects
        election = self.election
        if (election, self.history.kraft_version) != self._saved:
            self._saved = (election, self.history.kraft_version)
            effects.insert(0, SaveElection(election))
        if self._voters_told is not self.history.latest:
            self._voters_told = self.history.latest
            effects.append(VotersChanged(self.history.latest))
        # A timer that comes too early does no harm: it is set again then.
        if next_at < self._timer:
            self._timer = next_at
            effects.append(WakeAt(next_at))
        return effects

    def ticked(self) -> None:
        """The timer has come, and is no longer set."""
        self._timer = math.inf

    # Who this is, and who the others are.

    @property
    def epoch(self) -> LeaderEpoch:
        """The epoch of the role."""
        return self.role.epoch

    @property
    def key(self) -> ReplicaKey:
        """This node with its directory."""
        return self.local.key

    @property
    def voters(self) -> Voters:
        """The voters that count now."""
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        """Whether this node votes."""
        return is_voter(self.voters, self.key)

    @property
    def is_only_voter(self) -> bool:
        """Whether this node decides alone."""
        return len(self.voters) == 1 and self.is_voter

    @property
    def leader_id(self) -> int | None:
        """Which node leads, as far as it is known."""
        return find_leader_id(self.role, self.local.node_id)

    @property
    def election(self) -> Election:
        """What the disk has to know of the role.

        A prospective candidate has none of its own: it is saved as what it came from.
        """
        return Election(self.epoch, self.leader_id, vote_of(self.role, self.key))

    def leader_endpoints(self) -> Endpoints:
        """Return where the leader is reached, nothing if that is not known."""
        match self.role:
            case Leader() | Resigned():
                return self.local.listeners
            case Follower(endpoints=endpoints) | Prospective(endpoints=endpoints):
                return endpoints
            case _:
                return ()

    def endpoints_of(self, node_id: int) -> Endpoints:
        """Return where a voter is reached, as the log says."""
        voter = find_voter(self.voters, node_id)
        return () if voter is None else voter.listeners

    def find_peer(self, node_id: int) -> QuorumPeer | None:
        """Return how this node reaches a voter."""
        for each in self.endpoints_of(node_id):
            if each.name == self.settings.listener:
                return QuorumPeer(node_id, each.host, each.port)
        return None

    def peers(self) -> list[QuorumPeer]:
        """Return where to ask for the leader."""
        if self.settings.bootstrap:
            return list(self.settings.bootstrap)
        found = (self.find_peer(voter.node_id) for voter in self.voters)
        return [peer for peer in found if peer and peer.node_id != self.local.node_id]

    # What only a leader may answer.

    def leader_refusal(self, epoch: int) -> ErrorCode | None:
        """Return why a request to the leader of an epoch is not for this node."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(self.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None if self.stop_by is None else ErrorCode.BROKER_NOT_AVAILABLE

    def note_followed(self, replica: ReplicaKey) -> None:
        """A replica lives and follows: enough voters that do keep this node leading."""
        if isinstance(self.role, Leader) and is_voter(self.voters, replica):
            voter_ids = [voter.node_id for voter in self.voters]
            self.role.check_quorum.note(replica.node_id, voter_ids, self.local.node_id, self.now)

    # Chance and time.

    def pick(self, peers: Sequence[QuorumPeer]) -> QuorumPeer:
        """Choose one by chance."""
        return peers[int(self._chance() * len(peers))]

    def _election_time(self) -> float:
        if not self.is_voter:
            return math.inf
        timeout_ms = self.settings.election_timeout_ms
        return self.now + (timeout_ms + int(self._chance() * timeout_ms)) / 1000

    def fetch_deadline(self) -> float:
        """Return until when the next good answer of the leader has to come."""
        return self.now + self.settings.fetch_timeout_ms / 1000

    # Effects that several parts want.

    def send(self, peer: QuorumPeer, message: Message) -> None:
        """SendToPeer a request to a peer that is ready."""
        self.effects.append(self.requests.send(peer, message, self.now))

    def commit(self, high_watermark: Offset) -> None:
        """Take note that everything below is committed; it never falls."""
        if self.high_watermark is None or high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self.effects.append(QuorumCommitted(high_watermark))

    def append(self, data: bytes, end: Offset) -> None:
        """Append a batch of this leader's own."""
        self.effects.append(AppendBatches(data, self.end, end))
        self.end = end
        self.last_epoch = self.epoch

    def append_values(self, values: Sequence[bytes]) -> None:
        """Append records."""
        records = (
            Record(offset, self.instant.wall_ms, None, value)
            for offset, value in enumerate(values, self.end)
        )
        data = build_batch(records, leader_epoch=self.epoch)
        self.append(data, Offset(self.end + len(values)))

    def append_control(self, values: Sequence[QuorumValue]) -> Offset:
        """Append control records, which count at once; return the offset of the last."""
        data = build_quorum_batch(
            values,
            timestamp=self.instant.wall_ms,
            base_offset=self.end,
            leader_epoch=self.epoch,
        )
        for offset, value in enumerate(values, self.end):
            self.history.replay(value, offset)
        self.append(data, Offset(self.end + len(values)))
        return Offset(self.end - 1)

    def truncate(self, to: Offset) -> None:
        """Let go of the log from the offset on, with the voters that it named."""
        self.effects.append(TruncateLog(to))
        self.history.truncate(to)
        self.end = to
        self.last_epoch = self.log.epoch_at(to)

    def end_node(self, reason: str) -> None:
        """End the node; nothing is taken in any more."""
        self.effects.append(EndNode(reason))
        self.has_ended = True

    # Transitions.

    def start(self, saved: Election | None) -> None:
        """Take the role that the disk tells of."""
        epoch = LeaderEpoch(max(self.epoch, self.log.last_epoch))
        election_at = self._election_time()
        if saved is None or saved.epoch < epoch:
            self.role = Unattached(epoch, election_at)
        elif saved.leader_id == self.local.node_id:
            untold = {voter.node_id for voter in self.voters} - {self.local.node_id}
            self._enter(Resigned(epoch, election_at, untold=untold), Cause.STARTED)
        elif saved.leader_id is not None and self.endpoints_of(saved.leader_id):
            self._follow(epoch, saved.leader_id, self.endpoints_of(saved.leader_id), saved.vote)
            self._enter(self.role, Cause.STARTED)
        elif saved.vote is not None and is_vote_for(saved.vote, self.key) and self.is_voter:
            self._stand(epoch, Cause.STARTED)
        else:
            self.role = Unattached(epoch, election_at, saved.leader_id, saved.vote)
        if self.is_only_voter and not isinstance(self.role, Leader):
            self._stand(LeaderEpoch(epoch + 1), Cause.ONLY_VOTER)

    def become_unattached(
        self, epoch: LeaderEpoch, cause: Cause, leader_id: int | None = None
    ) -> None:
        """Give up what was before, and wait; of a vote in this very epoch nothing is forgotten."""
        before = self.role
        assert epoch > before.epoch or isinstance(before, Prospective), "an epoch never goes back"
        election_at = self._election_time()
        match before:
            case Prospective(ballots=ballots) if ballots.is_lost:
                pass  # it has had its answer, and leaves the others time for theirs
            case Unattached() | Prospective() | Candidate() | Resigned():
                if before.election_at > self.now and election_at < math.inf:
                    election_at = before.election_at
            case _:
                pass
        vote = None
        if isinstance(before, Prospective) and epoch == before.epoch:
            leader_id, vote = before.leader_id, before.vote
        self._enter(Unattached(epoch, election_at, leader_id, vote), cause)

    def note_vote(self, vote: Vote) -> None:
        """Vote in this epoch; the voted one gets time to win."""
        role = self.role
        assert isinstance(role, Unattached | Prospective), "only who knows no leader votes"
        assert role.vote is None, "one vote an epoch"
        role.vote = vote
        role.election_at = self._election_time()

    def become_follower(
        self, epoch: LeaderEpoch, leader_id: int, endpoints: Endpoints, cause: Cause
    ) -> None:
        """Follow a leader; its address is known."""
        before = self.role
        assert epoch >= before.epoch, "an epoch never goes back"
        assert leader_id != self.local.node_id, "no node follows itself"
        vote = vote_of(before, self.key) if epoch == before.epoch else None
        self._follow(epoch, leader_id, endpoints, vote)
        after, self.role = self.role, before
        self._enter(after, cause)

    def _follow(
        self, epoch: LeaderEpoch, leader_id: int, endpoints: Endpoints, vote: Vote | None
    ) -> None:
        self.role = Follower(epoch, leader_id, endpoints, self.fetch_deadline(), vote)
        self.role.update_voter_at = self.now + self.settings.fetch_timeout_ms / 1000

    def become_prospective(self, cause: Cause) -> None:
        """Ask for pre-votes."""
        before = self.role
        assert self.is_voter, "only voters stand"
        ballots = Ballots(voter.node_id for voter in self.voters)
        ballots.note(self.local.node_id, granted=True)
        role = Prospective(
            before.epoch,
            ballots,
            self._election_time(),
            self.leader_id,
            self.leader_endpoints(),
            vote_of(before, self.key),
        )
        self._enter(role, cause)
        if ballots.is_won:
            self.become_candidate(Cause.WON)

    def become_candidate(self, cause: Cause) -> None:
        """Ask for votes in a new epoch."""
        self._stand(LeaderEpoch(self.epoch + 1), cause)

    def _stand(self, epoch: LeaderEpoch, cause: Cause) -> None:
        ballots = Ballots(voter.node_id for voter in self.voters)
        ballots.note(self.local.node_id, granted=True)
        self._enter(Candidate(epoch, ballots, self._election_time()), cause)
        if ballots.is_won:
            self.become_leader()

    def become_leader(self) -> None:
        """Lead the epoch: its first batch says so, and is what the first commit has to reach."""
        candidate = self.role
        assert isinstance(candidate, Candidate), "only a candidate is elected"
        check_quorum = CheckQuorum(self.settings.check_quorum_seconds, self.now)
        self._enter(Leader(candidate.epoch, self.end, check_quorum, self.now), Cause.WON)
        voter_ids = [voter.node_id for voter in self.voters]
        values: list[QuorumValue] = [
            LeaderChangeMessage(
                leader_id=self.local.node_id,
                voters=[LeaderChangeMessageVoter(voter_id=each) for each in voter_ids],
                granting_voters=[
                    LeaderChangeMessageVoter(voter_id=each) for each in candidate.ballots.granting
                ],
            )
        ]
        latest = self.history.latest
        # A snapshot alone knows the first voters, and an address may have changed since.
        if latest.kraft_version and (
            latest.offset == IN_SNAPSHOT
            or find_voter(self.voters, self.local.node_id) != self.local
        ):
            values.append(KRaftVersionRecord(kraft_version=latest.kraft_version))
            values.append(voters_record(with_voter(self.voters, self.local)))
        self.append_control(values)

    def become_resigned(self, successors: tuple[ReplicaKey, ...], cause: Cause) -> None:
        """Stop leading; no other can lead this epoch."""
        assert isinstance(self.role, Leader), "only a leader resigns"
        untold = {voter.node_id for voter in self.voters} - {self.local.node_id}
        # A removed leader waits, too: it has to look for the next.
        timeout_ms = self.settings.election_timeout_ms
        election_at = self.now + (timeout_ms + int(self._chance() * timeout_ms)) / 1000
        self._enter(Resigned(self.epoch, election_at, successors, untold), cause)

    def _enter(self, role: Role, cause: Cause) -> None:
        before = self.role
        self.role = role
        self.requests.reset()
        self.effects.append(
            RoleChanged(type(before).__name__, type(role).__name__, role.epoch, cause)
        )
        leader_id = None if isinstance(role, Resigned) else self.leader_id
        if (leader_id, role.epoch) != self._told and not isinstance(role, Prospective):
            self._told = (leader_id, role.epoch)
            # What one event brings is told once.
            self.effects = [e for e in self.effects if not isinstance(e, LeaderChanged)]
            self.effects.append(LeaderChanged(leader_id, role.epoch))
