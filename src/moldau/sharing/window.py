"""The records of a share partition that are on their way: consecutive runs of the same state."""

from bisect import bisect_right
from operator import attrgetter

from moldau.kernel.ids import Offset
from moldau.sharing.states import RecordState, StateBatch

NO_WRITE = 0
NO_MEMBER = ""

# Frozen sets would hash the members, which takes a call each.
_DONE = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
_APART = (RecordState.ACQUIRED, RecordState.ARCHIVING)
"""Runs in these states stay runs of their own: what is said of them next may differ."""
_NOWHERE = Offset(-1)

_first = attrgetter("first")


class Run:
    """Consecutive offsets of which the same is to be said."""

    __slots__ = (
        "delivery_count",
        "first",
        "is_dying",
        "last",
        "lock_until",
        "member_id",
        "state",
        "write",
    )

    def __init__(
        self, first: Offset, last: Offset, state: RecordState, delivery_count: int
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = NO_MEMBER
        """The member that has it acquired."""
        self.lock_until = 0.0
        """When it is taken from its member, if that says nothing."""
        self.write = NO_WRITE
        """While a change is being recorded its number; `state` is what it changes to."""
        self.is_dying = False
        """Whether it is on its way into a dead letter topic."""

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether a member may get it."""
        return self.state is RecordState.AVAILABLE and not self.write

    def settle(self, state: RecordState) -> None:
        """Enter a state in which no member has it."""
        self.state = state
        self.member_id = NO_MEMBER
        self.write = NO_WRITE

    def batch(self) -> StateBatch:
        """Return it as it is recorded."""
        return StateBatch(self.first, self.last, self.state, self.delivery_count)

    def split(self, at: Offset) -> "Run":
        """Keep what is before an offset inside, and return the rest."""
        assert self.first < at <= self.last, "it splits something off"
        rest = Run(at, self.last, self.state, self.delivery_count)
        rest.member_id = self.member_id
        rest.lock_until = self.lock_until
        rest.write = self.write
        rest.is_dying = self.is_dying
        self.last = Offset(at - 1)
        return rest


class ShareWindow:
    """Runs without holes between them, from `start` up to, not including, `end`."""

    __slots__ = ("end", "runs", "start")

    def __init__(self, start: Offset) -> None:
        self.start = start
        self.end = start
        self.runs: list[Run] = []

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, run: Run) -> None:
        """Add a run at the end."""
        assert run.first == self.end, "there are no holes"
        self.runs.append(run)
        self.end = Offset(run.last + 1)

    def find(self, first: Offset, last: Offset) -> Run | None:
        """Return the run of exactly a range, None if the range is not one run."""
        index = bisect_right(self.runs, first, key=_first) - 1
        if index >= 0:
            run = self.runs[index]
            if run.first == first and run.last == last:
                return run
        return None

    def over(self, first: Offset, last: Offset) -> list[Run]:
        """Return the runs that have something of a range, whole ones."""
        runs = self.runs
        low = max(0, bisect_right(runs, first, key=_first) - 1)
        high = bisect_right(runs, last, key=_first)
        return [run for run in runs[low:high] if run.last >= first]

    def within(self, first: Offset, last: Offset) -> list[Run]:
        """Return the runs of exactly a range; those that go beyond it are split."""
        self._cut(first)
        self._cut(Offset(last + 1))
        return self.over(first, last)

    def _cut(self, at: Offset) -> None:
        index = bisect_right(self.runs, at, key=_first) - 1
        if index >= 0:
            run = self.runs[index]
            if run.first < at <= run.last:
                self.runs.insert(index + 1, run.split(at))

    def begin_at(self, start: Offset) -> None:
        """Forget what is before an offset."""
        self._cut(start)
        self.runs = [run for run in self.runs if run.first >= start]
        self.start = start
        self.end = max(self.end, start)

    def drop_done(self) -> None:
        """Move the start past everything at it that is done, and join what is alike."""
        # Each acquisition and each acknowledgement ends here: nothing is called for a run.
        runs = self.runs
        done = 0
        for run in runs:
            if run.write or run.state not in _DONE:
                break
            done += 1
        if done:
            self.start = Offset(runs[done - 1].last + 1)
            del runs[:done]
        before: Run | None = None
        is_joined = False
        for run in runs:
            if (
                before is not None
                and before.state is run.state
                and run.state not in _APART
                and not before.write
                and not run.write
                and before.delivery_count == run.delivery_count
            ):
                before.last = run.last
                run.first = _NOWHERE
                is_joined = True
            else:
                before = run
        if is_joined:
            self.runs = [run for run in runs if run.first != _NOWHERE]
