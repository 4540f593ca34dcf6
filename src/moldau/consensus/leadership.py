"""What a leader does: it appends, answers fetches, and says what is committed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.consensus import messages
from moldau.consensus.effects import (
    Answer,
    AnswerFetch,
    AnswerFetchSnapshot,
    ProposalRefused,
)
from moldau.consensus.elections import Elections
from moldau.consensus.events import EndOfEpoch, PeerRequest
from moldau.consensus.quorum import end_of_majority
from moldau.consensus.roles import Leader, Progress
from moldau.consensus.standing import Cause, Standing
from moldau.consensus.voter_changes import VoterChanges
from moldau.consensus.voters import ReplicaKey, Voter, is_voter
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT, SnapshotId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from moldau.protocol.messages.fetch import SnapshotId as WireSnapshotId
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

PARKED_MAX = 1000
"""Fetches beyond are answered at once, with nothing."""
OBSERVER_SECONDS = 300.0
"""After which a silent observer is forgotten."""


@dataclass(frozen=True, slots=True)
class ParkedFetch:
    """A fetch that waits for records, for a new high watermark, or for its time to be over."""

    event: PeerRequest
    request: FetchRequest
    asked: FetchPartition
    replica: ReplicaKey
    expires_at: float


class Leadership:
    """The leader's part; without leadership it refuses."""

    def __init__(self, standing: Standing, elections: Elections, changes: VoterChanges) -> None:
        self._standing = standing
        self._elections = elections
        self._changes = changes
        self._parked: list[ParkedFetch] = []
        self._parked_end = standing.end
        """The log's end as those that are parked know it."""

    # What this node wants.

    def propose(self, values: Sequence[bytes]) -> None:
        """Append records, if this node leads."""
        if not isinstance(self._standing.role, Leader):
            self._standing.effects.append(ProposalRefused())
            return
        self._standing.append_values(values)

    def upgrade_kraft_version(self) -> None:
        """Have the voters stand in the log, if this node leads and knows enough of them."""
        if not isinstance(self._standing.role, Leader):
            self._standing.effects.append(ProposalRefused())
            return
        self._changes.upgrade()

    def resign(self, cause: Cause) -> None:
        """Leave the rest of the epoch without a leader."""
        leader = self._standing.role
        assert isinstance(leader, Leader)
        self._standing.become_resigned(self._successors(leader), cause)

    def _successors(self, leader: Leader) -> tuple[ReplicaKey, ...]:
        """Return the other voters, those first that have fetched most."""
        others = [
            voter
            for voter in self._standing.voters
            if voter.node_id != self._standing.local.node_id
        ]
        ends = {voter.node_id: self._end_of(leader, voter) for voter in others}
        others.sort(key=lambda voter: (-ends[voter.node_id], voter.node_id))
        return tuple(voter.key for voter in others)

    def left(self) -> None:
        """Another role has begun: what waited for this one hears of it."""
        parked, self._parked = self._parked, []
        for each in parked:
            self._refuse_fetch(each.event, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._changes.left()

    # Progress.

    def _end_of(self, leader: Leader, voter: Voter) -> Offset:
        """Return below which offset a voter has everything on its disk; -1 if unknown."""
        standing = self._standing
        if voter.node_id == standing.local.node_id:
            return min(standing.log.synced_end, standing.end)
        progress = find_progress(leader, voter)
        return Offset(-1) if progress is None or progress.end is None else progress.end

    def note_stored(self) -> None:
        """Move the high watermark to what a majority has on disk by now, never back.

        An older epoch's records are committed only together with one of this one (Raft, 5.4.2).
        """
        standing = self._standing
        leader = standing.role
        assert isinstance(leader, Leader)
        reached = end_of_majority([self._end_of(leader, voter) for voter in standing.voters])
        if reached <= leader.epoch_start:
            return
        if leader.high_watermark is not None and reached <= leader.high_watermark:
            return
        leader.high_watermark = reached
        standing.commit(reached)
        if self._changes.committed(reached):
            self.resign(Cause.REMOVED)
            return
        self._wake()

    def _note_fetch(self, leader: Leader, replica: ReplicaKey, offset: Offset) -> None:
        standing = self._standing
        if replica.node_id < 0 or replica.node_id == standing.local.node_id:
            return
        progress = leader.progress.setdefault(replica, Progress())
        progress.note_fetch(offset, standing.end, standing.instant)
        standing.note_followed(replica)
        if is_voter(standing.voters, replica):
            self.note_stored()

    # Fetches.

    def answer_fetch(self, event: PeerRequest, request: FetchRequest) -> None:
        """Answer a replica's fetch, now or when there is something new."""
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            refused = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
            standing.effects.append(Answer(event.token, refused))
            return
        asked = messages.fetch_partition(request, event.version)
        if asked is None:
            refused = FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
            standing.effects.append(Answer(event.token, refused))
            return
        smallest = min(request.max_wait_ms, asked.fetch_offset, asked.last_fetched_epoch)
        if smallest < 0 or asked.last_fetched_epoch > asked.current_leader_epoch:
            self._refuse_fetch(event, ErrorCode.INVALID_REQUEST)
            return
        if (error := standing.leader_refusal(asked.current_leader_epoch)) is not None:
            self._refuse_fetch(event, error)
            return
        state = request.replica_state.replica_id
        replica_id = state if event.version >= 15 else request.replica_id
        fetch = ParkedFetch(
            event,
            request,
            asked,
            ReplicaKey(replica_id, asked.replica_directory_id),
            standing.now + request.max_wait_ms / 1000,
        )
        self._take_fetch(fetch)

    def _take_fetch(self, fetch: ParkedFetch) -> None:
        leader = self._standing.role
        assert isinstance(leader, Leader)
        asked = fetch.asked
        if self._find_elsewhere(asked) is None:
            self._note_fetch(leader, fetch.replica, Offset(asked.fetch_offset))
            if self._standing.role is not leader:  # it commits its removal, and so the last it does
                self._refuse_fetch(fetch.event, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                return
            known = -1 if leader.high_watermark is None else leader.high_watermark
            has_news = asked.fetch_offset < self._standing.end or known > asked.high_watermark
            if not has_news and fetch.request.max_wait_ms and len(self._parked) < PARKED_MAX:
                self._parked.append(fetch)
                return
        self._answer_fetch(fetch)

    def _find_elsewhere(self, asked: FetchPartition) -> SnapshotId | EndOfEpoch | None:
        """Return where a replica has to go instead, if its log is not a part of this one."""
        log = self._standing.log
        offset, epoch = asked.fetch_offset, asked.last_fetched_epoch
        latest = log.latest_snapshot
        if offset == 0 and latest not in (None, FIRST_SNAPSHOT):
            return latest
        if log.start_offset == 0 and offset == 0 and epoch == 0:
            return None
        earliest = log.earliest_snapshot
        if earliest is not None and (
            offset < log.start_offset
            or (offset == log.start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        ):
            return latest
        end = self._end_of_epoch(LeaderEpoch(epoch))
        return None if end.epoch == epoch and offset <= end.end_offset else end

    def _end_of_epoch(self, epoch: LeaderEpoch) -> EndOfEpoch:
        """Return the log's end of an epoch, with what this very event appends."""
        standing = self._standing
        if epoch == standing.epoch == standing.last_epoch:
            return EndOfEpoch(epoch, standing.end)
        return standing.log.end_of_epoch(epoch)

    def _answer_fetch(self, fetch: ParkedFetch) -> None:
        standing = self._standing
        leader = standing.role
        assert isinstance(leader, Leader)
        event, asked = fetch.event, fetch.asked
        response = messages.fetch_answer(
            self._elections.view(event.listener),
            ErrorCode.NONE,
            event.version,
            leader.high_watermark,
            standing.log.start_offset,
        )
        partition = response.responses[0].partitions[0]
        match self._find_elsewhere(asked):
            case SnapshotId(end_offset, epoch):
                partition.snapshot_id = WireSnapshotId(end_offset=end_offset, epoch=epoch)
            case EndOfEpoch(epoch, end_offset):
                partition.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            case None if asked.fetch_offset < standing.end:
                start, size = Offset(asked.fetch_offset), fetch.request.max_bytes
                standing.effects.append(AnswerFetch(event.token, response, start, size))
                return
            case None:
                pass
        standing.effects.append(Answer(event.token, response))

    def _refuse_fetch(self, event: PeerRequest, error: ErrorCode) -> None:
        standing = self._standing
        view = self._elections.view(event.listener)
        response = messages.fetch_answer(
            view, error, event.version, None, standing.log.start_offset
        )
        standing.effects.append(Answer(event.token, response))

    def _wake(self) -> None:
        """Answer all that waits: there is more to fetch, or more is committed."""
        self._parked_end = self._standing.end
        parked, self._parked = self._parked, []
        for each in parked:
            self._answer_fetch(each)

    # Snapshots.

    def answer_fetch_snapshot(self, event: PeerRequest, request: FetchSnapshotRequest) -> None:
        """Answer with a piece of a snapshot."""
        standing = self._standing
        if request.cluster_id not in (None, standing.settings.cluster_id):
            refused = FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
            standing.effects.append(Answer(event.token, refused))
            return
        asked = messages.snapshot_partition(request)
        if asked is None:
            refused = FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
            standing.effects.append(Answer(event.token, refused))
            return
        snapshot_id = SnapshotId(
            Offset(asked.snapshot_id.end_offset), LeaderEpoch(asked.snapshot_id.epoch)
        )
        size = None
        error: ErrorCode | None
        if (request.topics[0].name, asked.partition) != (messages.METADATA_TOPIC, 0):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif (error := standing.leader_refusal(asked.current_leader_epoch)) is None:
            size = standing.log.find_snapshot_size(snapshot_id)
            if size is None or snapshot_id == FIRST_SNAPSHOT:
                error = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= asked.position < size:
                error = ErrorCode.POSITION_OUT_OF_RANGE
        view = self._elections.view(event.listener)
        if error is not None or size is None:
            code = ErrorCode.SNAPSHOT_NOT_FOUND if error is None else error
            response = messages.snapshot_answer(view, request, code, event.version)
            standing.effects.append(Answer(event.token, response))
            return
        standing.note_followed(ReplicaKey(request.replica_id, asked.replica_directory_id))
        response = messages.snapshot_answer(
            view,
            request,
            ErrorCode.NONE,
            event.version,
            snapshot_id=snapshot_id,
            size=size,
            position=asked.position,
        )
        bytes_max = min(request.max_bytes, size - asked.position)
        standing.effects.append(
            AnswerFetchSnapshot(event.token, response, snapshot_id, asked.position, bytes_max)
        )

    # Time.

    def advance(self) -> float:
        """Do what is due, and return when to come back."""
        standing = self._standing
        leader = standing.role
        assert isinstance(leader, Leader)
        now = standing.now
        check_at = math.inf if standing.is_only_voter else leader.check_quorum.deadline
        if check_at <= now:
            self.resign(Cause.NO_MAJORITY)
            return now
        if leader.announce_at <= now:
            self._announce(leader)
            self._forget_observers(leader)
            leader.announce_at = now + standing.settings.announce_seconds
        change_at = self._changes.advance()
        if self._parked_end != standing.end:
            self._wake()
        for each in [each for each in self._parked if each.expires_at <= now]:
            self._parked.remove(each)
            self._answer_fetch(each)
        parked_at = min((each.expires_at for each in self._parked), default=math.inf)
        announce_at = math.inf if standing.is_only_voter else leader.announce_at
        return min(check_at, announce_at, change_at, parked_at)

    def _announce(self, leader: Leader) -> None:
        """Tell the voters that do not fetch who leads."""
        standing = self._standing
        silent_since = standing.now - standing.settings.announce_seconds
        for voter in standing.voters:
            if voter.node_id == standing.local.node_id:
                continue
            progress = find_progress(leader, voter)
            if progress and progress.fetched and progress.fetched.monotonic > silent_since:
                continue
            peer = standing.find_peer(voter.node_id)
            if peer is not None and standing.requests.is_ready(voter.node_id, standing.now):
                request = messages.begin_request(
                    standing.settings.cluster_id, standing.local, leader.epoch, voter.key
                )
                standing.send(peer, request)

    def _forget_observers(self, leader: Leader) -> None:
        oldest = self._standing.now - OBSERVER_SECONDS
        for key, progress in list(leader.progress.items()):
            is_silent = progress.fetched is not None and progress.fetched.monotonic < oldest
            if is_silent and not is_voter(self._standing.voters, key):
                del leader.progress[key]


def find_progress(leader: Leader, voter: Voter) -> Progress | None:
    """Return how far a voter has come; of voters without a directory the id has to do."""
    found = leader.progress.get(voter.key)
    if found is not None:
        return found
    for key, progress in leader.progress.items():
        if is_voter((voter,), key):
            return progress
    return None
