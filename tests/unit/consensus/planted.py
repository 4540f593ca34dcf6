"""Bugs planted in the quorum's machine, such as others have had; numbers are Kafka's issues."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from moldau.consensus.effects import QuorumCommitted, SaveElection
from moldau.consensus.elections import Elections
from moldau.consensus.following import Following
from moldau.consensus.leadership import Leadership
from moldau.consensus.quorum import CheckQuorum, end_of_majority
from moldau.consensus.roles import Candidate, Resigned
from moldau.consensus.standing import Standing
from moldau.consensus.voter_changes import VoterChanges
from moldau.consensus.voters import VoterHistory
from moldau.kernel.ids import LeaderEpoch, Offset

Plant = Callable[[pytest.MonkeyPatch], None]


def always(*_arguments: object) -> bool:
    return True


def nothing(*_arguments: object) -> None:
    pass


def told_before_saved(patch: pytest.MonkeyPatch) -> None:
    finish = Standing.finish

    def late(self, next_at):
        effects = finish(self, next_at)
        return sorted(effects, key=lambda effect: isinstance(effect, SaveElection))

    patch.setattr(Standing, "finish", late)


def vote_forgotten(patch: pytest.MonkeyPatch) -> None:
    start = Standing.start
    patch.setattr(
        Standing,
        "start",
        lambda self, saved: start(self, saved and replace(saved, vote=None)),
    )


def any_log_is_elected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Elections, "_is_up_to_date", always)


def leader_counts_before_sync(patch: pytest.MonkeyPatch) -> None:
    end_of = Leadership._end_of

    def early(self, leader, voter):
        standing = self._standing
        is_me = voter.node_id == standing.local.node_id
        return standing.end if is_me else end_of(self, leader, voter)

    patch.setattr(Leadership, "_end_of", early)


def older_epoch_committed(patch: pytest.MonkeyPatch) -> None:
    become_leader = Standing.become_leader

    def lead(self):
        become_leader(self)
        self.role.epoch_start = Offset(0)

    patch.setattr(Standing, "become_leader", lead)


def high_watermark_falls(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-12181: a voter's fetch offset goes back, and the watermark with it."""

    def note_stored(self):
        standing, leader = self._standing, self._standing.role
        reached = end_of_majority([self._end_of(leader, voter) for voter in standing.voters])
        if reached > leader.epoch_start and reached != leader.high_watermark:
            leader.high_watermark = standing.high_watermark = reached
            standing.effects.append(QuorumCommitted(reached))

    patch.setattr(Leadership, "note_stored", note_stored)


def leader_goes_on_after_restart(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10527."""
    start = Standing.start

    def again(self, saved):
        start(self, saved)
        if isinstance(self.role, Resigned):
            ballots = Candidate(self.role.epoch, None, math.inf)  # type: ignore[arg-type]
            ballots.ballots = type("Won", (), {"granting": []})()
            self.role = ballots
            self.become_leader()

    patch.setattr(Standing, "start", again)


def truncated_voters_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VoterHistory, "truncate", nothing)


def changes_overlap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VoterChanges, "_is_uncommitted", nothing)

    def standstill(self):
        self._pending = None

    patch.setattr(VoterChanges, "_standstill", standstill)


def fetch_before_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Following, "_can_fetch", lambda self: not self._standing.requests.is_fetching)


def removed_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17608."""
    committed = VoterChanges.committed

    def stay(self, high_watermark):
        committed(self, high_watermark)
        return False

    patch.setattr(VoterChanges, "committed", stay)


def quorum_unchecked(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-15489."""
    patch.setattr(CheckQuorum, "deadline", math.inf, raising=False)
    patch.setattr(CheckQuorum, "__init__", nothing)
    patch.setattr(CheckQuorum, "note", nothing)


def truncated_too_far(patch: pytest.MonkeyPatch) -> None:
    def truncate(self, epoch, end_offset):
        self._standing.truncate(self._standing.log.start_offset)

    patch.setattr(Following, "_truncate", truncate)


def observers_count(patch: pytest.MonkeyPatch) -> None:
    """As KAFKA-16530: a fetch of a replica without a vote moves the high watermark."""

    def note_stored(self):
        standing, leader = self._standing, self._standing.role
        ends = [progress.end or Offset(0) for progress in leader.progress.values()]
        ends.append(min(standing.log.synced_end, standing.end))
        reached = end_of_majority(ends)
        if reached > max(leader.epoch_start, leader.high_watermark or 0):
            leader.high_watermark = reached
            standing.commit(reached)
            self._wake()

    patch.setattr(Leadership, "note_stored", note_stored)


def epoch_of_the_loser(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Standing,
        "become_candidate",
        lambda self, cause: self._stand(LeaderEpoch(max(self.epoch, 1)), cause),
    )


def minority_elects(patch: pytest.MonkeyPatch) -> None:
    from moldau.consensus.quorum import Ballots

    patch.setattr(
        Ballots, "is_won", property(lambda self: len(self.granting) * 2 >= len(self._votes))
    )


def observers_stand(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17067."""

    def election_time(self):
        return self.now + 1 + self._chance()

    patch.setattr(Standing, "_election_time", election_time)


PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        told_before_saved,
        vote_forgotten,
        any_log_is_elected,
        leader_counts_before_sync,
        older_epoch_committed,
        high_watermark_falls,
        leader_goes_on_after_restart,
        truncated_voters_stay,
        changes_overlap,
        fetch_before_sync,
        removed_leader_stays,
        quorum_unchecked,
        truncated_too_far,
        observers_count,
        epoch_of_the_loser,
        minority_elects,
        observers_stand,
    )
}
