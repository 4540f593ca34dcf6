"""A member of the quorum: the protocol machine."""

import math
from collections.abc import Callable

from moldau.consensus.effects import (
    MoveLogStart,
    ProposalRefused,
    QuorumEffect,
    Stopped,
)
from moldau.consensus.elections import Elections
from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.events import (
    PeerRequest,
    PeerResponse,
    Propose,
    QuorumEvent,
    QuorumLog,
    RequestFailed,
    Resign,
    SendFailure,
    SnapshotWritten,
    Start,
    Stop,
    StorageFailed,
    Synced,
    Tick,
    UpgradeKraftVersion,
)
from moldau.consensus.following import Following
from moldau.consensus.leadership import Leadership
from moldau.consensus.messages import hint_of
from moldau.consensus.quorum_state import Election
from moldau.consensus.requests import Outstanding
from moldau.consensus.roles import Follower, Leader, Role, Unattached
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.standing import Cause, Standing
from moldau.consensus.voter_changes import VoterChanges
from moldau.consensus.voters import KRAFT_VERSION_MAX, Voter, VoterHistory, Voters, VotersAt
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from moldau.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from moldau.protocol.messages.vote import VoteRequest, VoteResponse
from moldau.protocol.schema import Message


class QuorumMember:
    """A voter, or an observer: events in, effects out; `Standing` has the table of its roles.

    The effects are performed in order, before the next event: so nothing is told that is not
    saved. The only voter of a quorum leads as soon as it starts, and then commits what it syncs.
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
        """Take what was loaded; `chance` returns numbers from 0 up to 1."""
        if history.kraft_version > KRAFT_VERSION_MAX:
            raise UnsupportedQuorumError(
                f"the quorum's kraft.version is {history.kraft_version},"
                f" and this release supports 0 to {KRAFT_VERSION_MAX}"
            )
        self._saved = saved
        self._has_started = False
        self._standing = Standing(local, settings, history, log, saved, chance)
        self._elections = Elections(self._standing)
        self._following = Following(self._standing, self._elections.hear_hint)
        self._changes = VoterChanges(self._standing, self._elections.view)
        self._leadership = Leadership(self._standing, self._elections, self._changes)

    # What others may know.

    @property
    def role(self) -> Role:
        """The role, which only events change."""
        return self._standing.role

    @property
    def election(self) -> Election:
        """What the disk has to know before anything is told of the role."""
        return self._standing.election

    @property
    def local(self) -> Voter:
        """This node, as a voter."""
        return self._standing.local

    @property
    def voters(self) -> Voters:
        """The voters that count now."""
        return self._standing.voters

    def voters_at(self, end_offset: Offset) -> VotersAt:
        """Return the voters that counted at the end of the log below this offset."""
        return self._standing.history.at(end_offset)

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version that counts now."""
        return self._standing.history.kraft_version

    @property
    def leader_id(self) -> int | None:
        """Which node leads, as far as it is known."""
        return self._standing.leader_id

    @property
    def high_watermark(self) -> Offset | None:
        """The end of what is committed; unknown until a leader has said so, or this one leads."""
        return self._standing.high_watermark

    # Events.

    def handle(self, event: QuorumEvent, now: Instant) -> list[QuorumEffect]:
        """Take in an event; the effects are to be performed in order, before the next event."""
        standing = self._standing
        standing.begin(now)
        if standing.has_ended or not (self._has_started or isinstance(event, Start)):
            self._refuse(event)
            return standing.effects
        before = standing.role
        self._take(event)
        return standing.finish(self._advance(before))

    def _refuse(self, event: QuorumEvent) -> None:
        match event:
            case Start():
                raise AssertionError("a member starts once")
            case Propose() | UpgradeKraftVersion():
                self._standing.effects.append(ProposalRefused())
            case _:  # peers see the connection end
                pass

    def _take(self, event: QuorumEvent) -> None:  # noqa: C901, PLR0912 - an event each
        standing = self._standing
        match event:
            case Start():
                assert not self._has_started, "a member starts once"
                self._has_started = True
                standing.start(self._saved)
            case Tick():
                standing.ticked()
            case Propose(values):
                self._leadership.propose(values)
            case UpgradeKraftVersion():
                self._leadership.upgrade_kraft_version()
            case PeerRequest(_, message):
                self._answer(event, message)
            case PeerResponse(request_id, message):
                sent = standing.requests.take(request_id)
                if sent is not None and not self._note(sent, message):
                    standing.requests.rest(sent.peer, standing.now)
            case RequestFailed(request_id, failure):
                sent = standing.requests.take(request_id)
                if sent is not None:
                    self._note_failure(sent, failure)
            case Synced(end_offset):
                assert end_offset <= standing.end, "what is synced was appended"
                if isinstance(standing.role, Leader):
                    self._leadership.note_stored()
            case SnapshotWritten(end_offset):
                committed = standing.high_watermark
                is_committed = committed is not None and end_offset <= committed
                assert is_committed, "a snapshot holds what is committed"
                standing.history.forget_before(end_offset)
                standing.effects.append(MoveLogStart(end_offset))
            case Resign(epoch):
                if isinstance(standing.role, Leader) and standing.epoch == epoch:
                    self._leadership.resign(Cause.RESIGNED)
            case StorageFailed():
                self._end(Cause.STORAGE_FAILED)
            case Stop(timeout_ms):
                self._stop(timeout_ms)

    def _advance(self, before: Role) -> float:
        """Do what time asks for, until nothing is due; return when to come back."""
        standing = self._standing
        if standing.has_ended:
            return math.inf
        standing.requests.expire(standing.now)
        while True:
            role = standing.role
            if before is not role:
                if isinstance(before, Leader):
                    self._leadership.left()
                before = role
            if self._maybe_stopped():
                return math.inf
            match role:
                case Leader():
                    next_at = self._leadership.advance()
                case Follower():
                    next_at = self._following.advance()
                case _:
                    next_at = self._elections.advance()
                    if isinstance(standing.role, Unattached):
                        self._following.look_for_leader()
            if standing.role is role:
                break
        stop_by = math.inf if standing.stop_by is None else standing.stop_by
        next_at = min(next_at, stop_by, standing.requests.next_at)
        assert next_at > standing.now, "all that is due is done"
        return next_at

    # The end.

    def _stop(self, timeout_ms: int) -> None:
        standing = self._standing
        standing.stop_by = standing.now + timeout_ms / 1000
        if isinstance(standing.role, Leader):
            self._leadership.resign(Cause.STOPPED)

    def _maybe_stopped(self) -> bool:
        """Say whether the quorum can do without this node: another leads, or its time is over."""
        standing = self._standing
        if standing.stop_by is None:
            return False
        if (
            standing.now >= standing.stop_by
            or not standing.is_voter
            or standing.is_only_voter
            or isinstance(standing.role, Follower)
        ):
            standing.effects.append(Stopped())
            standing.has_ended = True
            return True
        return False

    def _end(self, cause: Cause) -> None:
        standing = self._standing
        if isinstance(standing.role, Leader):
            self._leadership.resign(cause)
            self._leadership.left()
        standing.has_ended = True

    # Requests and answers.

    def _answer(self, event: PeerRequest, message: Message) -> None:
        match message:
            case FetchRequest():
                self._leadership.answer_fetch(event, message)
            case VoteRequest():
                self._elections.answer_vote(event, message)
            case BeginQuorumEpochRequest():
                self._elections.answer_begin(event, message)
            case EndQuorumEpochRequest():
                self._elections.answer_end(event, message)
            case FetchSnapshotRequest():
                self._leadership.answer_fetch_snapshot(event, message)
            case AddRaftVoterRequest():
                self._changes.answer_add(event, message)
            case RemoveRaftVoterRequest():
                self._changes.answer_remove(event, message)
            case UpdateRaftVoterRequest():
                self._changes.answer_update(event, message)
            case _:
                raise AssertionError(f"{type(message).__name__} is no request of the quorum")

    def _note(self, sent: Outstanding, message: Message) -> bool:
        """Take in the answer to an outstanding request; say whether it leads on."""
        match message:
            case FetchResponse():
                return self._following.note_fetch_answer(sent, message)
            case FetchSnapshotResponse():
                return self._following.note_snapshot_answer(message)
            case VoteResponse() | BeginQuorumEpochResponse() | EndQuorumEpochResponse():
                return self._note_voter(sent, message)
            case ApiVersionsResponse():
                self._changes.note_api_versions(sent.peer.node_id, message)
                return True
            case UpdateRaftVoterResponse():
                return self._following.note_update_answer(message)
            case AddRaftVoterResponse() | RemoveRaftVoterResponse():
                return self._following.note_join_answer(message)
            case _:
                raise AssertionError(f"{type(message).__name__} answers nothing of the quorum")

    def _note_voter(
        self,
        sent: Outstanding,
        message: VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse,
    ) -> bool:
        from_id = sent.peer.node_id
        if isinstance(message, VoteResponse) and (
            message.error_code == ErrorCode.UNSUPPORTED_VERSION
        ):
            self._elections.note_unknown_pre_vote()
            return True
        if message.error_code != ErrorCode.NONE:
            return False
        standing = self._standing
        hint = hint_of(message, standing.settings.listener)
        if hint is None:
            return False
        if (outcome := self._elections.hear_hint(hint)) is not None:
            return outcome
        if hint.error is not ErrorCode.NONE:
            return False
        match message:
            case VoteResponse():
                self._elections.note_vote_answer(from_id, message)
            case EndQuorumEpochResponse():
                self._elections.note_told(from_id)
            case _:  # a voter that knows its leader fetches
                pass
        return True

    def _note_failure(self, sent: Outstanding, failure: SendFailure) -> None:
        standing = self._standing
        standing.requests.rest(sent.peer, standing.now)
        match sent.message:
            case VoteRequest() if failure is SendFailure.UNSUPPORTED_VERSION:
                self._elections.note_unknown_pre_vote()
            case FetchRequest() | FetchSnapshotRequest():
                self._following.note_failure(sent.peer, failure)
            case _:
                self._changes.add_failed(sent.peer.node_id)
