"""A share group at work, by chance: members that read and fail, and a leader that restarts."""

from random import Random

from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, TopicId
from moldau.sharing.commands import InitializeState, ReadState, WriteState
from moldau.sharing.limits import AcquisitionWish, ShareLimits
from moldau.sharing.partition import SharePartition
from moldau.sharing.share_state import ShareKey, ShareState
from moldau.sharing.states import (
    Acknowledgement,
    AcknowledgementKind,
    FetchedBatches,
    ShareSpan,
    StateBatch,
    StateWrite,
)
from tests.unit.sharing.coordinators import Context, Coordinator

KEY = ShareKey("g", TopicId(b"t" * 16), 0)
MEMBERS = ("a", "b", "c")
FINAL = (AcknowledgementKind.ACCEPT, AcknowledgementKind.REJECT)
DONE = (*FINAL, AcknowledgementKind.GAP)


class Model:
    """Checks the laws of a share group after every step.

    A record is one member's at a time; what was accepted, and stored, is never delivered again;
    nothing is delivered more often than it may be; the start moves forward only; and in the end
    every record was delivered until somebody was done with it, or as often as it may be.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.limits = ShareLimits(
            random.choice((5, 20, 100)),
            random.choice((2, 3, 5)),
            random.choice((5.0, 30.0)),
            has_dead_letters=random.random() < 0.5,
        )
        updates = str(random.choice((0, 1, 3, 50)))
        self.coordinator = Coordinator(
            Context(share_coordinator_snapshot_update_records_per_snapshot=updates)
        )
        self.batches: list[ShareSpan] = []
        self.log_end = 0
        self.log_start = 0
        self.now = 0.0
        self.leader_epoch = 0
        self.held: dict[int, tuple[str, float]] = {}
        self.final: set[int] = set()
        """Stored as done, and its member knows it."""
        self.said: set[int] = set()
        """Stored as done, whether or not anybody heard of that."""
        self.counts: dict[int, int] = {}
        self.writes: list[tuple[StateWrite, int, dict[int, AcknowledgementKind]]] = []
        assert not isinstance(self.ask(InitializeState(KEY, 1, 0)), Refusal)
        self.partition = self.lead()

    # Surroundings.

    def ask(self, command: object) -> object:
        return self.coordinator.ask(command, Instant(self.now, int(self.now * 1000)))

    def lead(self) -> SharePartition:
        self.leader_epoch += 1
        state = self.ask(ReadState(KEY, self.leader_epoch))
        assert isinstance(state, ShareState)
        self.held.clear()
        self.dying: list[StateBatch] = []
        self.start = state.start_offset
        partition = SharePartition(Offset(state.start_offset), state.state_epoch, state.batches)
        partition.log_begins_at(Offset(self.log_start))
        return partition

    def produce(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.1:
                self.log_end += self.random.randint(1, 3)  # compacted away
            size = self.random.randint(1, 6)
            self.batches.append(ShareSpan(Offset(self.log_end), Offset(self.log_end + size - 1)))
            self.log_end += size

    def retain(self) -> None:
        """Retention deletes the oldest records, whoever has them."""
        if self.batches and self.random.random() < 0.2:
            self.log_start = self.batches.pop(0).last + 1
            self.partition.log_begins_at(Offset(self.log_start))
            self.held = {o: lock for o, lock in self.held.items() if o >= self.log_start}

    # What members do.

    def acquire(self) -> int:
        if not self.partition.can_acquire(self.limits):
            return 0
        member = self.random.choice(MEMBERS)
        offset = self.partition.next_fetch_offset
        read = [batch for batch in self.batches if batch.last >= offset]
        read = read[: self.random.randint(1, 6)]
        wish = AcquisitionWish(
            self.random.choice((1, 3, 10, 500)),
            self.random.choice((1, 5, 500)),
            is_strict=self.random.random() < 0.5,
        )
        acquired = self.partition.acquire(
            member, FetchedBatches(offset, read), wish=wish, limits=self.limits, now=self.now
        )
        total = 0
        for first, last, count in acquired:
            assert 1 <= count <= self.limits.delivery_count_max
            for each in range(first, last + 1):
                assert each not in self.held, f"{each} has two owners"
                assert each not in self.final, f"{each} was done"
                self.held[each] = member, self.now + self.limits.lock_seconds
                self.counts[each] = count
                total += 1
        if wish.is_strict:
            assert total <= wish.records_max
        return total

    def acknowledge(self, kinds: tuple[AcknowledgementKind, ...]) -> None:
        if not self.held:
            return
        member, _ = self.held[self.random.choice(sorted(self.held))]
        mine = sorted(offset for offset, lock in self.held.items() if lock[0] == member)
        first = self.random.choice(mine)
        last = first
        while last + 1 in mine and self.random.random() < 0.9:
            last += 1
        types = tuple(self.random.choice(kinds) for _ in range(last - first + 1))
        said = Acknowledgement(Offset(first), Offset(last), types)
        write = self.partition.acknowledge(member, [said], limits=self.limits, now=self.now)
        spoken = dict(zip(range(first, last + 1), types, strict=True))
        for offset, kind in spoken.items():
            if kind is AcknowledgementKind.RENEW:
                self.held[offset] = member, self.now + self.limits.lock_seconds
            else:
                del self.held[offset]
        if write is not None:
            self.writes.append((write, self.leader_epoch, spoken))

    def acknowledge_in_vain(self) -> None:
        """What one does not have cannot be acknowledged."""
        offset = self.random.randint(self.partition.start_offset, self.log_end + 5)
        owner = self.held.get(offset, ("", 0.0))[0]
        member = self.random.choice([each for each in MEMBERS if each != owner])
        before = self.partition.states()
        said = Acknowledgement(Offset(offset), Offset(offset), (AcknowledgementKind.ACCEPT,))
        try:
            self.partition.acknowledge(member, [said], limits=self.limits, now=self.now)
        except Refusal:
            assert self.partition.states() == before
        else:
            raise AssertionError(f"{member} acknowledged {offset}, which it has not got")

    def leave(self) -> None:
        member = self.random.choice(MEMBERS)
        write = self.partition.release(member, self.limits)
        self.held = {offset: lock for offset, lock in self.held.items() if lock[0] != member}
        if write is not None:
            self.writes.append((write, self.leader_epoch, {}))

    def bury(self) -> None:
        """Put what is given up into a dead letter topic, which may be slow."""
        self.dying += self.partition.take_dying()
        if self.dying and self.random.random() < 0.7:
            batch = self.dying.pop(self.random.randrange(len(self.dying)))
            if batch.last >= self.log_start:
                first = max(batch.first, self.log_start)
                assert self.partition.start_offset <= first, "the start passes the dying"
            write = self.partition.died(batch)
            if write is not None:
                self.writes.append((write, self.leader_epoch, {}))

    # What happens.

    def store(self) -> None:
        """The oldest write arrives, and its answer; or either is lost."""
        if not self.writes:
            return
        write, leader_epoch, spoken = self.writes.pop(0)
        outcome: object = None
        if self.random.random() < 0.9:
            outcome = self.ask(
                WriteState(
                    KEY,
                    write.state_epoch,
                    leader_epoch,
                    write.start_offset,
                    write.delivery_complete_count,
                    write.batches,
                )
            )
        is_answered = self.random.random() < 0.95
        is_stored = isinstance(outcome, Done) and is_answered
        if isinstance(outcome, Done):
            self.said |= {o for o, kind in spoken.items() if kind in DONE}
        if leader_epoch != self.leader_epoch:
            assert not isinstance(outcome, Done), "who led before is fenced"
            return
        if not is_stored:
            # The locks are as they were, if their time is not up by now.
            self.held |= {
                batch_offset: self._lock(batch_offset)
                for batch in write.batches
                for batch_offset in range(batch.first, batch.last + 1)
                if write.number and batch_offset >= self.partition.start_offset
            }
        else:
            self.final |= {offset for offset, kind in spoken.items() if kind in FINAL}
        self.partition.written(write.number, is_recorded=is_stored)

    def _lock(self, offset: int) -> tuple[str, float]:
        for run in self.partition._window.over(Offset(offset), Offset(offset)):
            return run.member_id, run.lock_until
        raise AssertionError(f"{offset} is not in the window")

    def expire(self) -> None:
        self.now += self.random.choice((0.1, 2.0, 40.0))
        write = self.partition.expire(self.limits, self.now)
        self.held = {o: lock for o, lock in self.held.items() if lock[1] > self.now}
        if write is not None:
            self.writes.append((write, self.leader_epoch, {}))

    def restart(self) -> None:
        """The leader, the coordinator, or both begin again with what is stored."""
        if self.random.random() < 0.5:
            self.coordinator.restart()
        if self.random.random() < 0.5:
            self.partition = self.lead()

    # Laws.

    def check(self) -> None:
        partition = self.partition
        assert partition.start_offset >= self.start, "the start moves back"
        self.start = partition.start_offset
        position = partition.start_offset
        for batch in partition.states():
            assert batch.first == position, "there are no holes"
            position = Offset(batch.last + 1)
        assert position == partition.end_offset
        assert partition.delivery_complete_count >= 0

    def run(self, step_count: int) -> None:
        steps = [
            (self.produce, 4),
            (self.acquire, 6),
            (lambda: self.acknowledge(tuple(AcknowledgementKind)), 5),
            (lambda: self.acknowledge((AcknowledgementKind.ACCEPT,)), 3),
            (self.acknowledge_in_vain, 1),
            (self.store, 8),
            (self.bury, 2),
            (self.expire, 2),
            (self.leave, 1),
            (self.retain, 1),
            (self.restart, 1),
        ]
        actions = [action for action, weight in steps for _ in range(weight)]
        for _ in range(step_count):
            self.random.choice(actions)()
            self.check()
        self.drain()

    def drain(self) -> None:
        """Let everything be read: nothing was passed over."""
        for _ in range(10_000):
            while self.writes:
                self.store()
            self.bury()
            if self.acquire() == 0 and not self.held and not self.dying:
                if self.partition.next_fetch_offset >= self.log_end:
                    break
                if not [each for each in self.batches if each.last >= self.partition.end_offset]:
                    break
            self.acknowledge((AcknowledgementKind.ACCEPT,))
            self.expire()
            self.check()
        there = {
            offset
            for batch in self.batches
            for offset in range(batch.first, batch.last + 1)
            if offset >= self.log_start
        }
        assert there <= set(self.counts), f"never delivered: {sorted(there - set(self.counts))}"
        given_up = {
            offset
            for offset, count in self.counts.items()
            if count == self.limits.delivery_count_max
        }
        lost = there - self.said - given_up
        assert not lost, f"delivered, and nobody said that it is done: {sorted(lost)}"
