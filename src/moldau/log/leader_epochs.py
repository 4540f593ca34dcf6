"""Which leader epoch began at which offset: what tells two diverged logs apart."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Self

from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.checkpoints import parse_number, parse_rows, render_rows
from moldau.log.errors import MalformedFileError

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

_epoch = attrgetter("epoch")
_start = attrgetter("start_offset")


class EpochStart(NamedTuple):
    """The first offset that a leader epoch wrote."""

    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """Where a leader epoch ends: the offset after its last."""

    epoch: LeaderEpoch
    end_offset: Offset


UNKNOWN_END: Final = EpochEnd(LeaderEpoch(-1), Offset(-1))


class LeaderEpochs:
    """The epochs along one log, both epoch and start offset strictly increasing.

    What changes it returns whether it did: then the checkpoint is to be written.
    """

    __slots__ = ("_starts",)

    def __init__(self, starts: Iterable[EpochStart] = ()) -> None:
        self._starts: list[EpochStart] = []
        for start in starts:
            self.assign(*start)

    @classmethod
    def parse(cls, path: str, data: bytes) -> Self:
        """Read a leader-epoch-checkpoint file."""
        epochs = cls()
        for line, (epoch, start) in parse_rows(path, data, 2):
            before = epochs.latest
            epochs.assign(
                LeaderEpoch(parse_number(path, line, epoch)),
                Offset(parse_number(path, line, start)),
            )
            if before is not None and epochs._starts[-2:-1] != [before]:
                raise MalformedFileError(path, line, "epochs and offsets must both grow")
        return epochs

    def render(self) -> bytes:
        """Return a leader-epoch-checkpoint file."""
        return render_rows([f"{epoch} {start}" for epoch, start in self._starts])

    @property
    def starts(self) -> Sequence[EpochStart]:
        """The epochs in order."""
        return self._starts

    @property
    def latest(self) -> EpochStart | None:
        """The newest epoch, None as long as nothing was written."""
        return self._starts[-1] if self._starts else None

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> bool:
        """Note that `epoch` wrote from `start_offset` on; called for every batch.

        What contradicts it goes: the newest leader is right about its log.
        """
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        starts = self._starts
        if starts and starts[-1].epoch == epoch and starts[-1].start_offset <= start_offset:
            return False
        while starts and (starts[-1].epoch >= epoch or starts[-1].start_offset >= start_offset):
            starts.pop()
        starts.append(EpochStart(epoch, start_offset))
        return True

    def truncate_from_end(self, end_offset: Offset) -> bool:
        """Forget the epochs that began at `end_offset` or later."""
        keep = len(self._starts)
        while keep and self._starts[keep - 1].start_offset >= end_offset:
            keep -= 1
        changed = keep < len(self._starts)
        del self._starts[keep:]
        return changed

    def truncate_from_start(self, start_offset: Offset) -> bool:
        """Forget the epochs that ended before `start_offset`; the one there now begins at it."""
        gone = bisect_right(self._starts, start_offset, key=_start)
        if not gone or (gone == 1 and self._starts[0].start_offset == start_offset):
            return False
        self._starts[:gone] = [EpochStart(self._starts[gone - 1].epoch, start_offset)]
        return True

    def clear(self) -> bool:
        """Forget everything."""
        changed = bool(self._starts)
        self._starts.clear()
        return changed

    def end_offset_for(self, epoch: LeaderEpoch, log_end: Offset) -> EpochEnd:
        """Answer OffsetForLeaderEpoch: the end of the newest epoch that is not above `epoch`.

        `UNKNOWN_END` when `epoch` is -1 or newer than all that is known.
        """
        latest = self.latest
        if epoch < 0 or latest is None or epoch > latest.epoch:
            return UNKNOWN_END
        if epoch == latest.epoch:
            return EpochEnd(epoch, log_end)
        above = bisect_right(self._starts, epoch, key=_epoch)
        end = self._starts[above].start_offset
        # The data of an epoch before the first is gone: the follower goes on where the log starts.
        return EpochEnd(self._starts[above - 1].epoch if above else epoch, end)

    def find_epoch_of(self, offset: Offset) -> LeaderEpoch | None:
        """Return the epoch that wrote `offset`, None if it lies before the first."""
        number = bisect_right(self._starts, offset, key=_start)
        return self._starts[number - 1].epoch if number else None
