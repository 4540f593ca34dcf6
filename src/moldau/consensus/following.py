"""What a follower does: it fetches, truncates what its leader does not have, takes snapshots."""

import math
from collections.abc import Callable

from moldau._native.records import Batch, read_batches
from moldau.consensus import messages
from moldau.consensus.effects import (
    AppendBatches,
    LoadSnapshot,
    PublishSnapshot,
    QuorumPeer,
    WriteSnapshotPiece,
)
from moldau.consensus.events import SendFailure
from moldau.consensus.messages import LeaderHint
from moldau.consensus.requests import Outstanding
from moldau.consensus.roles import FetchingSnapshot, Follower
from moldau.consensus.standing import Cause, Standing
from moldau.consensus.voters import Voter, find_voter
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import (
    add_raft_voter,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
)
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from moldau.protocol.schema import Buffer, Message
from moldau.records.batch import read_records
from moldau.records.control import QuorumValue, read_control_record

SNAPSHOT_HEAD_BYTES = 1 << 16
"""What surely has the control batch with which a snapshot begins."""


class Following:
    """The part of a node that follows, or looks for a leader to follow."""

    def __init__(self, standing: Standing, hear_hint: Callable[[LeaderHint], bool | None]) -> None:
        self._standing = standing
        self._hear_hint = hear_hint

    # Time.

    def advance(self) -> float:
        """Do what is due as a follower, and return when to come back."""
        standing = self._standing
        role = standing.role
        assert isinstance(role, Follower)
        if standing.stop_by is not None:
            return math.inf
        if standing.is_voter and role.fetch_by <= standing.now:
            standing.become_prospective(Cause.FETCH_TIMEOUT)
            return standing.now
        request = self._change_of_voters(role) if role.update_voter_at <= standing.now else None
        if request is not None:
            peer = role.peer(standing.settings.listener)
            if standing.requests.is_ready(peer.node_id, standing.now):
                self._rest_voter_update(role)
                standing.send(peer, request)
        else:
            if role.update_voter_at <= standing.now:
                self._rest_voter_update(role)
            self._fetch_from_best(role)
        fetch_by = role.fetch_by if standing.is_voter else math.inf
        # What is due already waits for the answer to an outstanding request.
        update_at = role.update_voter_at
        return min(fetch_by, update_at if update_at > standing.now else math.inf)

    def _rest_voter_update(self, role: Follower) -> None:
        standing = self._standing
        role.update_voter_at = standing.now + standing.settings.fetch_timeout_ms / 1000

    def _can_fetch(self) -> bool:
        """Say whether a fetch may go out: its offset promises that all below it is on disk."""
        standing = self._standing
        return not standing.requests.is_fetching and standing.log.synced_end >= standing.end

    def _fetch_from_best(self, role: Follower) -> None:
        standing = self._standing
        if not self._can_fetch():
            return
        leader = role.peer(standing.settings.listener)
        if leader.node_id in standing.requests.silent:
            # Its address may be old, or it may be gone: another node may know better.
            standing.requests.silent.discard(leader.node_id)
            self.look_for_leader()
        elif standing.requests.is_resting(leader.node_id, standing.now):
            self.look_for_leader()
        elif standing.requests.is_ready(leader.node_id, standing.now):
            standing.send(leader, self._fetch_request(role))

    def look_for_leader(self) -> None:
        """Fetch from any node that is ready: its answer names the leader."""
        standing = self._standing
        if standing.stop_by is not None or not self._can_fetch():
            return
        ready = [
            peer
            for peer in standing.peers()
            if standing.requests.is_ready(peer.node_id, standing.now)
        ]
        if ready:
            standing.send(standing.pick(ready), self._log_fetch_request())

    # Requests.

    def _fetch_request(self, role: Follower) -> Message:
        standing = self._standing
        snapshot = role.snapshot
        if snapshot is None:
            return self._log_fetch_request()
        partition = fetch_snapshot.FetchSnapshotRequestPartitionSnapshot(
            partition=0,
            current_leader_epoch=standing.epoch,
            snapshot_id=fetch_snapshot.SnapshotId(
                end_offset=snapshot.id.end_offset, epoch=snapshot.id.epoch
            ),
            position=snapshot.position,
            replica_directory_id=standing.local.directory_id,
        )
        topic = fetch_snapshot.FetchSnapshotRequestTopicSnapshot(
            name=messages.METADATA_TOPIC, partitions=[partition]
        )
        return FetchSnapshotRequest(
            cluster_id=standing.settings.cluster_id,
            replica_id=standing.local.node_id,
            max_bytes=standing.settings.fetch_bytes_max,
            topics=[topic],
        )

    def _log_fetch_request(self) -> FetchRequest:
        standing = self._standing
        known = standing.high_watermark
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=standing.epoch,
            fetch_offset=standing.end,
            last_fetched_epoch=standing.last_epoch,
            partition_max_bytes=0,
            replica_directory_id=standing.local.directory_id,
            high_watermark=messages.NOBODY if known is None else known,
        )
        topic = FetchTopic(
            topic=messages.METADATA_TOPIC,
            topic_id=messages.METADATA_TOPIC_ID,
            partitions=[partition],
        )
        return FetchRequest(
            cluster_id=standing.settings.cluster_id,
            replica_id=standing.local.node_id,
            replica_state=ReplicaState(replica_id=standing.local.node_id),
            max_wait_ms=standing.settings.fetch_wait_ms,
            min_bytes=0,
            max_bytes=standing.settings.fetch_bytes_max,
            session_epoch=-1,
            topics=[topic],
        )

    def _change_of_voters(self, role: Follower) -> Message | None:
        """Return what the leader is to change about this node as a voter, if anything."""
        standing = self._standing
        known = find_voter(standing.voters, standing.local.node_id)
        level = standing.history.kraft_version
        if standing.is_voter:
            is_outdated = known != standing.local if level else not role.has_updated_leader
            return self._update_request() if is_outdated else None
        if not (standing.settings.auto_join and level):
            return None
        if known is None:
            return self._add_request()
        return remove_request(standing.settings.cluster_id, known)

    def _update_request(self) -> Message:
        standing = self._standing
        local = standing.local
        return update_raft_voter.UpdateRaftVoterRequest(
            cluster_id=standing.settings.cluster_id,
            current_leader_epoch=standing.epoch,
            voter_id=local.node_id,
            voter_directory_id=local.directory_id,
            listeners=[
                update_raft_voter.Listener(name=each.name, host=each.host, port=each.port)
                for each in local.listeners
            ],
            kraft_version_feature=update_raft_voter.KRaftVersionFeature(
                min_supported_version=local.kraft_version_min,
                max_supported_version=local.kraft_version_max,
            ),
        )

    def _add_request(self) -> Message:
        standing = self._standing
        local = standing.local
        return add_raft_voter.AddRaftVoterRequest(
            cluster_id=standing.settings.cluster_id,
            timeout_ms=standing.settings.answer_timeout_ms,
            voter_id=local.node_id,
            voter_directory_id=local.directory_id,
            listeners=[
                add_raft_voter.Listener(name=each.name, host=each.host, port=each.port)
                for each in local.listeners
            ],
            ack_when_committed=False,
        )

    # Answers to fetches.

    def note_fetch_answer(  # noqa: PLR0911 - one for each kind of answer
        self, sent: Outstanding, response: FetchResponse
    ) -> bool:
        """Take in what the leader has, if that is still what was asked for."""
        standing = self._standing
        hint = messages.hint_of(response, standing.settings.listener)
        if response.error_code != ErrorCode.NONE or hint is None:
            return False
        if (outcome := self._hear_hint(hint)) is not None:
            return outcome
        role = standing.role
        if not isinstance(role, Follower) or hint.error is not ErrorCode.NONE:
            return False
        if not self._is_asked_still(sent.message):
            return True
        partition = response.responses[0].partitions[0]
        if partition.diverging_epoch.epoch >= 0:
            self._truncate(
                LeaderEpoch(partition.diverging_epoch.epoch),
                Offset(partition.diverging_epoch.end_offset),
            )
        elif partition.snapshot_id.epoch >= 0 or partition.snapshot_id.end_offset >= 0:
            if min(partition.snapshot_id.epoch, partition.snapshot_id.end_offset) < 0:
                return False
            snapshot_id = SnapshotId(
                Offset(partition.snapshot_id.end_offset), LeaderEpoch(partition.snapshot_id.epoch)
            )
            # The log is thrown away for it, so it has to be ahead of the log.
            if (snapshot_id.epoch, snapshot_id.end_offset) <= (standing.last_epoch, standing.end):
                return False
            role.snapshot = FetchingSnapshot(snapshot_id)
        elif not self._append(partition):
            return False
        self._note_good_fetch(role)
        return True

    def _is_asked_still(self, message: Message) -> bool:
        """Say whether an answer meets the log as it was when the request went out."""
        standing = self._standing
        assert isinstance(message, FetchRequest)
        asked = message.topics[0].partitions[0]
        return (
            asked.fetch_offset == standing.end
            and asked.last_fetched_epoch == standing.last_epoch
            and asked.current_leader_epoch == standing.epoch
        )

    def _note_good_fetch(self, role: Follower) -> None:
        if self._standing.role is role:
            role.fetch_by = self._standing.fetch_deadline()
            role.has_fetched = True
            role.may_doubt = True

    def _truncate(self, epoch: LeaderEpoch, end_offset: Offset) -> None:
        """Go back to where the leader's log and this one may still be equal."""
        standing = self._standing
        local = standing.log.end_of_epoch(epoch)
        to = min(local.end_offset, end_offset) if local.epoch == epoch else local.end_offset
        committed = standing.high_watermark or Offset(0)
        if min(end_offset, to) < committed:
            standing.end_node(
                f"the leader of epoch {standing.epoch} has epoch {epoch} up to {end_offset}, and"
                f" everything below {committed} is committed"
            )
            return
        standing.truncate(Offset(to))

    def _append(self, partition: PartitionData) -> bool:
        """Append what came, as far as it is whole and follows; say whether it is sound."""
        standing = self._standing
        data = memoryview(partition.records or b"")
        try:
            batches = read_batches(data)
            values = [
                (offset, value)
                for batch in batches
                if batch.is_control
                for offset, value in _control_values(data, batch)
            ]
        except ProtocolError:
            return False
        base, size = standing.end, 0
        for batch in batches:
            # KAFKA-18723: a read may race a truncation, and then has batches of a newer epoch.
            if not standing.last_epoch <= batch.leader_epoch <= standing.epoch:
                break
            if batch.base_offset != standing.end:
                return False
            standing.end = Offset(batch.last_offset + 1)
            standing.last_epoch = LeaderEpoch(batch.leader_epoch)
            size = batch.position + batch.size
        if size:
            standing.effects.append(AppendBatches(data[:size], base, standing.end))
            for offset, value in values:
                if offset < standing.end:
                    standing.history.replay(value, offset)
        if partition.high_watermark >= 0:
            standing.commit(Offset(min(partition.high_watermark, standing.end)))
        return True

    # Answers with snapshots.

    def note_snapshot_answer(  # noqa: PLR0911 - one for each kind of answer
        self, response: FetchSnapshotResponse
    ) -> bool:
        """Take in a piece of the leader's snapshot, and the snapshot with the last one."""
        standing = self._standing
        hint = messages.hint_of(response, standing.settings.listener)
        if response.error_code != ErrorCode.NONE or hint is None:
            return False
        if (outcome := self._hear_hint(hint)) is not None:
            return outcome
        role = standing.role
        if not isinstance(role, Follower) or role.snapshot is None:
            return False
        piece = response.topics[0].partitions[0]
        if hint.error is not ErrorCode.NONE:
            is_gone = hint.error in (
                ErrorCode.SNAPSHOT_NOT_FOUND,
                ErrorCode.POSITION_OUT_OF_RANGE,
            )
            if is_gone:
                role.snapshot = None
                self._note_good_fetch(role)
            return is_gone
        fetching = role.snapshot
        told = (piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
        data = memoryview(piece.unaligned_records)
        if told != fetching.id or piece.position != fetching.position or not data:
            role.snapshot = None
            return False
        fetching.head += data[: SNAPSHOT_HEAD_BYTES - len(fetching.head)]
        standing.effects.append(WriteSnapshotPiece(fetching.id, fetching.position, data))
        fetching.position += len(data)
        if fetching.position >= piece.size and not self._publish(role, fetching):
            return False
        self._note_good_fetch(role)
        return True

    def _publish(self, role: Follower, fetched: FetchingSnapshot) -> bool:
        """Take the snapshot that has come for the log; say whether it is sound."""
        standing = self._standing
        role.snapshot = None
        try:
            control = snapshot_control(fetched.head)
        except ProtocolError:
            return False
        if not control:
            return False
        standing.effects.append(PublishSnapshot(fetched.id))
        standing.end, standing.last_epoch = fetched.id.end_offset, fetched.id.epoch
        standing.history.restart(control, fetched.id.end_offset)
        standing.effects.append(LoadSnapshot(fetched.id))
        standing.commit(fetched.id.end_offset)
        return True

    # Answers about this node's vote.

    def note_update_answer(self, response: update_raft_voter.UpdateRaftVoterResponse) -> bool:
        """The leader knows where this voter is now, or refuses."""
        hint = messages.hint_of(response, self._standing.settings.listener)
        assert hint is not None
        if (outcome := self._hear_hint(hint)) is not None:
            return outcome
        role = self._standing.role
        if not isinstance(role, Follower):
            return False
        if hint.error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            return False
        role.has_updated_leader = True
        self._note_good_fetch(role)
        return True

    def note_join_answer(
        self,
        response: add_raft_voter.AddRaftVoterResponse | remove_raft_voter.RemoveRaftVoterResponse,
    ) -> bool:
        """The leader took the wish, or could not now; it is repeated in any case."""
        return response.error_code in (
            ErrorCode.NONE,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.DUPLICATE_VOTER,
        )

    # Failures.

    def note_failure(self, peer: QuorumPeer, failure: SendFailure) -> None:
        """The leader cannot be reached; that nothing listens there says that it is gone."""
        standing = self._standing
        role = standing.role
        if (
            failure is SendFailure.REFUSED
            and standing.settings.doubts_refusing_leader
            and isinstance(role, Follower)
            and role.may_doubt
            and role.leader_id == peer.node_id
            and standing.is_voter
            and standing.stop_by is None
        ):
            standing.become_prospective(Cause.LEADER_REFUSED)


def remove_request(cluster_id: str, voter: Voter) -> Message:
    """Ask for the removal of a voter: of this node, as it was with another directory."""
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter.node_id, voter_directory_id=voter.directory_id
    )


def _control_values(data: Buffer, batch: Batch) -> list[tuple[int, QuorumValue]]:
    found = []
    for record in read_records(data, batch):
        value = read_control_record(record).value
        if isinstance(value, QuorumValue):
            found.append((record.offset, value))
    return found


def snapshot_control(data: Buffer) -> list[QuorumValue]:
    """Return what the control batches say with which a snapshot begins."""
    values: list[QuorumValue] = []
    for batch in read_batches(data):
        if not batch.is_control:
            break
        values += [value for _, value in _control_values(data, batch)]
    return values
