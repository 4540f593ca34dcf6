"""A partition as a share group sees it: which member has which records, and which are done."""

from collections.abc import Iterable, Sequence
from itertools import count

from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.sharing.acquisition import acquire
from moldau.sharing.limits import AcquisitionWish, ShareLimits
from moldau.sharing.states import (
    FIRST_FINAL,
    Acknowledgement,
    AcknowledgementKind,
    Acquired,
    FetchedBatches,
    RecordState,
    StateBatch,
    StateWrite,
)
from moldau.sharing.window import NO_WRITE, Run, ShareWindow

# A member of an enumeration is slow to look up.
_AVAILABLE = RecordState.AVAILABLE
_ACQUIRED = RecordState.ACQUIRED
_ARCHIVING = RecordState.ARCHIVING
_ACCEPTED = (AcknowledgementKind.ACCEPT,)

_BECOMES = {
    AcknowledgementKind.GAP: RecordState.ARCHIVED,
    AcknowledgementKind.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgementKind.RELEASE: RecordState.AVAILABLE,
    AcknowledgementKind.REJECT: RecordState.ARCHIVED,
}


class SharePartition:
    """The leader's view of one partition for one share group; times are monotonic.

        available --acquire--> acquired --accept--> acknowledged
            ^                    |  |
            +--release, timeout--+  +--reject, gap, delivered too often--> archived

    Where there is a dead letter topic, `archiving` comes before `archived`, except for gaps.

    What leaves `acquired` because a member says so is recorded first: the `StateWrite` that is
    returned has to be answered with `written`. What a timeout releases counts at once, and its
    write may fail: then a record is delivered once more after a restart.
    """

    def __init__(
        self, start_offset: Offset, state_epoch: int, batches: Iterable[StateBatch] = ()
    ) -> None:
        self.state_epoch = state_epoch
        self._window = ShareWindow(start_offset)
        self._writes = count(NO_WRITE + 1)
        for batch in batches:
            self._load(batch)
        self._window.drop_done()

    def _load(self, batch: StateBatch) -> None:
        window = self._window
        if batch.first > window.end:
            # Acquired before the restart, and nothing was heard of it: no member has it now.
            last = Offset(batch.first - 1)
            window.append(Run(window.end, last, RecordState.AVAILABLE, 0))
        first = max(batch.first, window.end)
        if first <= batch.last:
            window.append(Run(first, batch.last, batch.state, batch.delivery_count))

    # What there is.

    @property
    def start_offset(self) -> Offset:
        """The first record that is not done."""
        return self._window.start

    @property
    def end_offset(self) -> Offset:
        """Behind the last record that any member ever got."""
        return self._window.end

    @property
    def delivery_complete_count(self) -> int:
        """How many records are done between the two."""
        count = 0
        for run in self._window.runs:
            if run.state >= FIRST_FINAL:
                count += run.last - run.first + 1
        return count

    @property
    def next_fetch_offset(self) -> Offset:
        """Where to read what a member may get."""
        # Asked for again and again for each record: nothing is called for a run.
        window = self._window
        for run in window.runs:
            if run.state is _AVAILABLE and not run.write:
                return run.first
        return window.end

    @property
    def next_deadline(self) -> float | None:
        """When the next lock is taken away."""
        soonest = None
        for run in self._window.runs:
            if (
                run.state is _ACQUIRED
                and not run.write
                and (soonest is None or run.lock_until < soonest)
            ):
                soonest = run.lock_until
        return soonest

    def states(self) -> list[StateBatch]:
        """Return what is known of all records between start and end."""
        return [run.batch() for run in self._window.runs]

    def can_acquire(self, limits: ShareLimits) -> bool:
        """Whether there may be something for a member, if the log has it."""
        window = self._window
        return (
            window.end - window.start < limits.in_flight_max or self.next_fetch_offset < window.end
        )

    # What members do.

    def acquire(
        self,
        member_id: str,
        fetched: FetchedBatches,
        *,
        wish: AcquisitionWish,
        limits: ShareLimits,
        now: float,
    ) -> list[Acquired]:
        """Lock records for a member, of those that were read for it."""
        acquired = acquire(self._window, fetched, wish, limits)
        until = now + limits.lock_seconds
        result = []
        for run in acquired:
            run.member_id = member_id
            run.lock_until = until
            result.append(Acquired(run.first, run.last, run.delivery_count))
        self._window.drop_done()
        return result

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        *,
        limits: ShareLimits,
        now: float,
    ) -> StateWrite | None:
        """Take what a member says of its records, all or, with a `Refusal`, nothing of it.

        None: there is nothing to be recorded, as for locks that were only renewed.
        """
        if len(acknowledgements) == 1:
            [only] = acknowledgements
            run = self._window.find(only.first, only.last)
            if run is not None and only.types == _ACCEPTED and not _wrong_owner(run, member_id):
                # All of what was acquired together, as nearly always.
                run.state = RecordState.ACKNOWLEDGED
                return self._recorded_first((run,), limits)
        said = [
            piece
            for each in acknowledgements
            if each.last >= self.start_offset
            for piece in self._checked(member_id, each, limits)
        ]
        changed = []
        for first, last, kind in said:
            for run in self._window.within(first, last):
                if kind is AcknowledgementKind.RENEW:
                    run.lock_until = now + limits.lock_seconds
                else:
                    run.state = _BECOMES[kind]
                    if kind is AcknowledgementKind.REJECT and limits.has_dead_letters:
                        run.state = RecordState.ARCHIVING
                    changed.append(run)
        return self._recorded_first(changed, limits)

    def release(self, member_id: str, limits: ShareLimits) -> StateWrite | None:
        """Give back what a member has: it is gone."""
        runs = [run for run in self._locked() if run.member_id == member_id]
        for run in runs:
            run.state = RecordState.AVAILABLE
        return self._recorded_first(runs, limits)

    def _checked(
        self, member_id: str, said: Acknowledgement, limits: ShareLimits
    ) -> list[tuple[Offset, Offset, AcknowledgementKind]]:
        window = self._window
        if not window.runs:
            raise Refusal(
                ErrorCode.INVALID_RECORD_STATE,
                "Nothing of this partition is acquired.",
            )
        for which, offset in (("first", said.first), ("last", said.last)):
            if offset >= window.end:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"The {which} offset is behind all that was ever acquired.",
                )
        if AcknowledgementKind.RENEW in said.types and not limits.may_renew:
            raise Refusal(
                ErrorCode.INVALID_RECORD_STATE,
                "This group does not let locks be renewed.",
            )
        first = max(said.first, window.start)
        for run in window.over(first, said.last):
            if wrong := _wrong_owner(run, member_id):
                raise Refusal(ErrorCode.INVALID_RECORD_STATE, wrong)
        return [
            (max(begin, first), end, kind) for begin, end, kind in _pieces(said) if end >= first
        ]

    # What happens.

    def expire(self, limits: ShareLimits, now: float) -> StateWrite | None:
        """Take away what was locked for too long."""
        runs = [run for run in self._locked() if run.lock_until <= now]
        for run in runs:
            run.settle(_released(run, limits))
        if not runs:
            return None
        write = self._write(runs)
        self._window.drop_done()
        return write

    def log_begins_at(self, log_start: Offset) -> None:
        """Give up what the log has no more, acquired or not."""
        if log_start > self._window.start:
            self._window.begin_at(log_start)
            self._window.drop_done()

    def written(self, number: int, *, is_recorded: bool) -> None:
        """A write has an outcome: what it says counts, or the locks are as they were."""
        if number == NO_WRITE:
            return
        for run in self._window.runs:
            if run.write == number:
                if is_recorded:
                    run.settle(run.state)
                else:
                    run.state = RecordState.ACQUIRED
                    run.write = NO_WRITE
        self._window.drop_done()

    # Dead letters.

    @property
    def has_given_up(self) -> bool:
        """Whether there may be something for a dead letter topic."""
        for run in self._window.runs:  # noqa: SIM110 - each record asks, and `any` takes more calls
            if run.state is _ARCHIVING:
                return True
        return False

    def take_dying(self) -> list[StateBatch]:
        """Return what has to be put into a dead letter topic, each once."""
        dying = [
            run
            for run in self._window.runs
            if run.state is RecordState.ARCHIVING and not run.write and not run.is_dying
        ]
        for run in dying:
            run.is_dying = True
        return [run.batch() for run in dying]

    def died(self, batch: StateBatch) -> StateWrite | None:
        """Be done with what was put there, or could not be: it must not hold up the others."""
        if batch.last < self.start_offset:
            return None
        runs = [
            run
            for run in self._window.within(max(batch.first, self.start_offset), batch.last)
            if run.state is RecordState.ARCHIVING
        ]
        for run in runs:
            run.settle(RecordState.ARCHIVED)
        write = self._write(runs) if runs else None
        self._window.drop_done()
        return write

    # Parts of the above.

    def _locked(self) -> Iterable[Run]:
        return (
            run for run in self._window.runs if run.state is RecordState.ACQUIRED and not run.write
        )

    def _recorded_first(self, runs: Sequence[Run], limits: ShareLimits) -> StateWrite | None:
        if not runs:
            return None
        number = next(self._writes)
        for run in runs:
            if run.state is RecordState.AVAILABLE:
                run.state = _released(run, limits)
            run.write = number
        return self._write(runs, number)

    def _write(self, runs: Iterable[Run], number: int = NO_WRITE) -> StateWrite:
        return StateWrite(
            number,
            self.state_epoch,
            self._window.start,
            self.delivery_complete_count,
            tuple([run.batch() for run in runs]),
        )


def _released(run: Run, limits: ShareLimits) -> RecordState:
    if run.delivery_count < limits.delivery_count_max:
        return RecordState.AVAILABLE
    return RecordState.ARCHIVING if limits.has_dead_letters else RecordState.ARCHIVED


def _wrong_owner(run: Run, member_id: str) -> str:
    """Return why a member has nothing to say of a run; nothing if it has."""
    if run.write:
        return "An acknowledgement of these records is being stored."
    if run.state is not _ACQUIRED:
        return "The records are not acquired, or no more."
    if run.member_id != member_id:
        return "Another member has acquired the records."
    return ""


def _pieces(said: Acknowledgement) -> Iterable[tuple[Offset, Offset, AcknowledgementKind]]:
    """Give what is said of consecutive offsets together."""
    if len(said.types) == 1:
        yield said.first, said.last, said.types[0]
        return
    first = said.first
    for offset, (kind, following) in enumerate(
        zip(said.types, (*said.types[1:], None), strict=True), said.first
    ):
        if kind is not following:
            yield first, Offset(offset), kind
            first = Offset(offset + 1)
