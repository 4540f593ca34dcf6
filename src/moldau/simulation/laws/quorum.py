"""What a quorum may never do, checked as its effects are performed."""

from collections import Counter
from typing import NamedTuple
from zlib import crc32

from moldau.consensus.effects import QuorumEffect, RoleChanged, SendToPeer
from moldau.consensus.member import QuorumMember
from moldau.consensus.quorum import majority
from moldau.consensus.quorum_state import Election
from moldau.consensus.roles import Leader
from moldau.consensus.voters import ReplicaKey, Voters, is_voter
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import SnapshotId
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.stored.control_records import VotersRecord
from moldau.simulation.laws.violation import LawViolation
from moldau.simulation.quorum_log import MemoryQuorumLog, SimulatedBatch, control_values, digest_of


class Seat(NamedTuple):
    """A node at one time: with its disk, and as often as it was started."""

    replica: ReplicaKey
    incarnation: int


class QuorumLaws:
    """The quorum as all nodes together have shown it; outlives each of them."""

    def __init__(self) -> None:
        self.committed: dict[Offset, SimulatedBatch] = {}
        self.committed_end = Offset(0)
        self.digests: dict[Offset, int] = {Offset(0): 0}
        """The image by the offset at which it ends."""
        self._leaders: dict[LeaderEpoch, Seat] = {}
        self._named: dict[tuple[Offset, LeaderEpoch], bytes] = {}
        self._led_since: dict[LeaderEpoch, float] = {}
        self.counts: Counter[str] = Counter()

    # The disk.

    def saved(self, seat: Seat, before: Election | None, after: Election) -> None:
        """An election is made durable."""
        self.counts["elections saved"] += 1
        if before is None:
            return
        if after.epoch < before.epoch:
            raise LawViolation("epochs never regress", f"{seat}: {before}, then {after}")
        if after.epoch > before.epoch:
            return
        if before.leader_id is not None and after.leader_id not in (before.leader_id, None):
            raise LawViolation("one leader per epoch", f"{seat} saved {before}, then {after}")
        is_leader = after.leader_id == seat.replica.node_id
        if before.vote is not None and after.vote != before.vote and not is_leader:
            raise LawViolation("one vote per epoch", f"{seat}: {before}, then {after}")

    def appended(self, seat: Seat, batches: list[SimulatedBatch]) -> None:
        """Batches are appended to a log."""
        for batch in batches:
            named = self._named.setdefault((batch.base, batch.epoch), batch.data)
            if named != batch.data:
                raise LawViolation(
                    "an offset in an epoch names one record",
                    f"{seat} has another batch at {batch.base} of epoch {batch.epoch}",
                )

    def truncated(
        self, seat: Seat, to: Offset, batches: list[SimulatedBatch], high_watermark: Offset | None
    ) -> None:
        """Batches are taken from a log."""
        self.counts["truncations"] += 1
        if high_watermark is not None and to < high_watermark:
            raise LawViolation(
                "nothing below the high watermark is truncated", f"{seat}: {to} < {high_watermark}"
            )
        for batch in batches:
            if self.committed.get(batch.base) == batch:
                raise LawViolation("committed records stay", f"{seat} truncates {batch.base}")

    # What is told.

    def told(
        self, seat: Seat, effect: QuorumEffect, member: QuorumMember, log: MemoryQuorumLog
    ) -> None:
        """Something is about to leave a node: all that it rests on is on its disk."""
        if log.election != member.election:
            raise LawViolation(
                "saved before told",
                f"{seat} tells {type(effect).__name__} as {member.election}, but {log.election}"
                " is saved",
            )
        if isinstance(effect, SendToPeer) and isinstance(effect.message, FetchRequest):
            offset = effect.message.topics[0].partitions[0].fetch_offset
            if offset > log.synced_end:
                raise LawViolation(
                    "no fetch beyond the synced end", f"{seat}: {offset} > {log.synced_end}"
                )

    # Roles.

    def changed_role(
        self, seat: Seat, effect: RoleChanged, member: QuorumMember, log: MemoryQuorumLog
    ) -> None:
        """A node takes another role."""
        self.counts[f"{effect.before} -> {effect.after}: {effect.cause}"] += 1
        if effect.after in ("Prospective", "Candidate", "Leader") and not is_voter(
            member.voters, seat.replica
        ):
            raise LawViolation("only voters stand", f"{seat}: {effect}")
        if effect.after != "Leader":
            return
        self.counts["leaders"] += 1
        first = self._leaders.setdefault(effect.epoch, seat)
        if first != seat:
            raise LawViolation(
                "one leader per epoch", f"{first} and {seat} led epoch {effect.epoch}"
            )
        self._check_complete(seat, log)

    def led_since(self, epoch: LeaderEpoch, now: float) -> float:
        """Return when a leader of an epoch was first seen."""
        return self._led_since.setdefault(epoch, now)

    def _check_complete(self, seat: Seat, log: MemoryQuorumLog) -> None:
        if log.end_offset < self.committed_end:
            raise LawViolation(
                "a leader has all that is committed",
                f"{seat} ends at {log.end_offset}, {self.committed_end} is committed",
            )
        for base in reversed(self.committed):
            if base < log.start_offset:
                return
            [mine] = log.between(base, self.committed[base].end)
            if mine != self.committed[base]:
                raise LawViolation("a leader has all that is committed", f"{seat} lacks {base}")
            return

    # Commits.

    def committed_by(
        self,
        seat: Seat,
        high_watermark: Offset,
        member: QuorumMember,
        disks: dict[ReplicaKey, MemoryQuorumLog],
    ) -> None:
        """A node moves its high watermark; a leader may only with a majority of disks."""
        self.counts["commits"] += 1
        role = member.role
        if not isinstance(role, Leader):
            return
        epoch = disks[seat.replica].epoch_at(high_watermark)
        if epoch != role.epoch:
            raise LawViolation(
                "a leader commits its own epoch first", f"{seat} commits {epoch} in {role.epoch}"
            )
        holding = sum(
            log.synced_end >= high_watermark and log.epoch_at(high_watermark) == epoch
            for log in _disks_of(member.voters, disks)
        )
        if holding < majority(len(member.voters)):
            raise LawViolation(
                "committed is what a majority has on disk",
                f"{seat} commits {high_watermark}: {holding} of {len(member.voters)} have it",
            )

    def check_voters(self, seat: Seat, member: QuorumMember, log: MemoryQuorumLog) -> None:
        """Voters count as the log has them, also when it was cut."""
        voters = log.load_history(member.voters_at(Offset(-1)).voters).voters
        if voters != member.voters:
            raise LawViolation(
                "voters are those of the log",
                f"{seat} believes in {_ids(member.voters)}, its log in {_ids(voters)}",
            )

    def check_change(self, seat: Seat, member: QuorumMember, log: MemoryQuorumLog) -> None:
        """A leader begins one change of voters after the other."""
        role = member.role
        if not isinstance(role, Leader) or role.high_watermark is None:
            return
        changes = [
            offset
            for batch in log.between(role.high_watermark, log.end_offset)
            for offset, value in control_values(batch.data)
            if isinstance(value, VotersRecord)
        ]
        if len(changes) > 1:
            raise LawViolation("one change of voters at a time", f"{seat}: {changes}")

    def check_leader(self, seat: Seat, member: QuorumMember) -> None:
        """A leader that is removed, and has committed that, leads no more."""
        role = member.role
        if not isinstance(role, Leader) or role.high_watermark is None:
            return
        if not is_voter(member.voters_at(role.high_watermark).voters, seat.replica):
            raise LawViolation("only voters lead", f"{seat} leads {_ids(member.voters)}")

    def applied(self, seat: Seat, batch: SimulatedBatch, digest: int) -> int:
        """A node applies a committed batch; returns its image with it."""
        digest = crc32(batch.data, digest)
        known = self.committed.get(batch.base)
        if known is None:
            if batch.base != self.committed_end:
                raise LawViolation(
                    "committed records never change",
                    f"{seat} commits {batch.base}, which {self.committed_end} should be",
                )
            self.committed[batch.base] = batch
            self.committed_end = batch.end
            self.digests[batch.end] = digest
        elif known != batch:
            raise LawViolation(
                "committed records never change",
                f"{seat} has epoch {batch.epoch} at {batch.base}, committed is {known.epoch}",
            )
        if self.digests[batch.end] != digest:
            raise LawViolation("equal offset, equal image", f"{seat} at {batch.end}")
        return digest

    def loaded(self, seat: Seat, snapshot_id: SnapshotId, data: bytes) -> int:
        """A node takes the image of a snapshot, and returns it."""
        self.counts["snapshots loaded"] += 1
        digest = digest_of(data)
        if self.digests.get(snapshot_id.end_offset) != digest:
            raise LawViolation("a snapshot is what it replaces", f"{seat}: {snapshot_id}")
        return digest


def _ids(voters: Voters) -> list[int]:
    return [voter.node_id for voter in voters]


def _disks_of(voters: Voters, disks: dict[ReplicaKey, MemoryQuorumLog]) -> list[MemoryQuorumLog]:
    """Return the disks of voters, also those that were lost meanwhile."""
    return [log for key, log in disks.items() if any(is_voter((voter,), key) for voter in voters)]
