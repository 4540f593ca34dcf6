"""One compaction of a partition from beginning to end, in steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from moldau._native.compact import KEY_BYTES, KeyMap
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset
from moldau.log.compaction.collect import KeyCollection
from moldau.log.compaction.plan import CompactionPlan, group_segments
from moldau.log.compaction.rewrite import CompactionRules, Rewrite, RewriteStats
from moldau.log.compaction.swap import Replacement, discard
from moldau.log.compaction.transactions import SeenTransactions, collect_aborted

LOAD_FACTOR: Final = 0.9


@dataclass(frozen=True, slots=True)
class Worked:
    """A piece of work is done: a moment to wait, or to give up."""

    io_bytes: int


@dataclass(frozen=True, slots=True)
class Swap:
    """A new segment is on the device: swap it in on the event loop, sync the directory, go on."""

    replacement: Replacement


CompactionStep: TypeAlias = Worked | Swap


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """How much memory a compaction may use, and how much it reads at a time."""

    keys_bytes: int = 128 << 20
    io_bytes: int = 512 << 10
    load_factor: float = LOAD_FACTOR


@dataclass(slots=True)
class Compaction:
    """Runs a plan; when `steps` has ended, everything below `cleaned_to` is compacted.

    Any step may be the last: close the generator, and call `abandon` where no log uses the
    partition's `.cleaned` files any more.
    """

    disk: Disk
    plan: CompactionPlan
    limits: CompactionLimits
    secret: bytes
    """Sixteen bytes that no client can guess, for the hashes of the keys."""
    now_ms: int
    cleaned_to: Offset = field(init=False)
    collected_bytes: int = 0
    keys_used: float = 0.0
    """How full the key map was: at 1, the dirty part did not fit."""
    stats: RewriteStats = field(default_factory=RewriteStats)
    _current: Replacement | None = None

    def __post_init__(self) -> None:
        self.cleaned_to = self.plan.first_dirty

    def steps(self) -> Iterator[CompactionStep]:
        """Do the work, a bounded piece at a time."""
        plan = self.plan
        keys = self._make_keys()
        collection = KeyCollection(self.disk, plan, keys, self.limits.io_bytes)
        for io_bytes in collection.steps():
            self.collected_bytes += io_bytes
            yield Worked(io_bytes)
        self.keys_used = keys.key_count / keys.key_count_max
        yield from self._rewrite(keys, collection.end_offset)
        self.cleaned_to = collection.end_offset

    def _rewrite(self, keys: KeyMap, keys_end: Offset) -> Iterator[CompactionStep]:
        log, end = self.plan.log, self.plan.end
        segments = [s for s in log.segments if s.base_offset < min(keys_end, end)]
        if not segments:
            return
        rules = CompactionRules(log, keys, keys_end, end, self.now_ms)
        needed = rules.needed_offsets()
        aborted = collect_aborted(self.disk, log, segments[0].base_offset, end)
        transactions = SeenTransactions(aborted)
        for group in group_segments(segments, log.config, end):
            rewrite = Rewrite(self.disk, rules, group, transactions, needed, self.stats)
            self._current = rewrite.replacement
            for io_bytes in rewrite.steps(self.limits.io_bytes):
                yield Worked(io_bytes)
            yield Swap(rewrite.replacement)
            self._current = None

    def abandon(self) -> None:
        """Remove what is half done."""
        if self._current is not None:
            discard(self.disk, self._current)
            self._current = None

    def _make_keys(self) -> KeyMap:
        plan, limits = self.plan, self.limits
        affordable = int(limits.keys_bytes / KEY_BYTES * limits.load_factor)
        # There cannot be more keys than offsets: a small partition needs no large map.
        key_count_max = max(1, min(affordable, plan.end - plan.first_dirty))
        return KeyMap(key_count_max, self.secret, load_factor=limits.load_factor)
