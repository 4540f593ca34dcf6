"""Bugs planted in the log, each of which the model has to find.

MOLDAU_PLANT_EXAMPLES has it search; otherwise it does what it found once.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from moldau._native.segment_scan import SegmentScan
from moldau.kernel.ids import Offset
from moldau.log import producers, recovery, removal
from moldau.log.aborted_index import AbortedIndex
from moldau.log.appender import Appender
from moldau.log.config import FOREVER
from moldau.log.dirty import Dirty, DirtyFiles
from moldau.log.offset_index import OffsetIndex, OffsetPosition
from moldau.log.partition import PartitionLog
from moldau.log.producers import Producers
from moldau.log.retention import count_expired
from moldau.log.segment import Segment
from moldau.log.truncation import Truncation
from tests.unit.log.logs import TestLog
from tests.unit.log.model import LogMachine

EXAMPLES = int(os.environ.get("MOLDAU_PLANT_EXAMPLES", "0"))
"""How many are searched for one that finds a bug: 2000 are far more than it takes."""

UPDATING = "MOLDAU_UPDATE_GOLDEN" in os.environ
PINNED = Path(__file__).parents[2] / "golden/planted_bugs.txt"
"""An example for each bug, as a search has found it."""

Plant = Callable[[pytest.MonkeyPatch], None]


def nothing(*_: Any, **__: Any) -> None:
    """Stand in for what is forgotten."""


def recovery_checks_no_checksums(patch: pytest.MonkeyPatch) -> None:
    def scan(tail: Any, *, check_from: int, **options: Any) -> SegmentScan:
        return SegmentScan(tail, check_from=FOREVER, **options)

    patch.setattr(recovery, "SegmentScan", scan)


def recovery_does_not_sync_what_it_keeps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery._Opening, "_sync_files", nothing)


def recovery_takes_lost_records_for_a_hole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery._Opening, "_is_lost", nothing)


def recovery_forgets_the_producers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "replay", lambda *_: [])


def every_start_is_taken_for_clean(patch: pytest.MonkeyPatch) -> None:
    reopen = TestLog.reopen
    patch.setattr(TestLog, "reopen", lambda self, **_: reopen(self, is_clean=True))


def retention_ignores_names_that_are_not_durable(patch: pytest.MonkeyPatch) -> None:
    begin = removal.Removal.__init__

    def wrong(self: removal.Removal, *args: Any, **_: Any) -> None:
        begin(self, *args, is_durable=False)

    patch.setattr(removal.Removal, "__init__", wrong)


def retention_ignores_the_watermark(patch: pytest.MonkeyPatch) -> None:
    def count(*args: Any, high_watermark: int, **options: Any) -> int:
        return count_expired(*args, high_watermark=FOREVER, **options)

    patch.setattr(removal, "count_expired", count)


def change_what_is_synced(patch: pytest.MonkeyPatch, change: Callable[[Dirty], None]) -> None:
    take = DirtyFiles.take

    def changed(self: DirtyFiles, end_offset: Any) -> Dirty:
        dirty = take(self, end_offset)
        change(dirty)
        return dirty

    patch.setattr(DirtyFiles, "take", changed)


def files_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    change_what_is_synced(patch, lambda dirty: setattr(dirty, "files", ()))


def names_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    change_what_is_synced(patch, lambda dirty: setattr(dirty, "directory", None))


def consumers_see_what_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLog, "durable_offset", PartitionLog.written_offset)


def truncation_does_not_lower_the_recovery_point(patch: pytest.MonkeyPatch) -> None:
    cut = Truncation._cut

    def wrong(self: Truncation, *args: Any) -> None:
        synced = self._state.synced
        cut(self, *args)
        self._state.synced = synced

    patch.setattr(Truncation, "_cut", wrong)


def truncation_forgets_the_sync_that_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DirtyFiles, "cut", nothing)


def truncation_comes_before_its_checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TestLog, "lower", nothing)


def truncation_keeps_the_producers(patch: pytest.MonkeyPatch) -> None:
    cut = Truncation._cut
    patch.setattr(Truncation, "_cut", lambda self, end, _: cut(self, end, self._state.producers))


def a_failed_write_is_not_cut_off(patch: pytest.MonkeyPatch) -> None:
    def undo(self: Segment) -> None:
        assert self.tail is not None
        self.tail.rewind()

    patch.setattr(Segment, "undo", undo)


def a_failed_write_keeps_its_producers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Producers, "rewind", nothing)


def late_index_entries_are_believed(patch: pytest.MonkeyPatch) -> None:
    extend = OffsetIndex.extend
    patch.setattr(
        OffsetIndex, "extend", lambda self, keys, at: extend(self, keys, at[1:] + at[-1:])
    )
    find = Segment._find_from

    def believe(self: Segment, entry: OffsetPosition, *args: Any) -> Any:
        # No batch is behind this offset, so that nothing looks wrong.
        return find(self, entry._replace(offset=Offset(FOREVER)), *args)

    patch.setattr(Segment, "_find_from", believe)


def epochs_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Appender, "note_epochs", nothing)


def aborted_transactions_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AbortedIndex, "add", nothing)


def duplicates_are_not_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producers, "find_duplicate", nothing)


# With a seed that finds it soon; any other does, too, some after hundreds of examples.
PLANTS: dict[Plant, int] = {
    recovery_checks_no_checksums: 0,
    recovery_does_not_sync_what_it_keeps: 3,
    recovery_takes_lost_records_for_a_hole: 6,
    recovery_forgets_the_producers: 0,
    every_start_is_taken_for_clean: 0,
    retention_ignores_names_that_are_not_durable: 0,
    retention_ignores_the_watermark: 1,
    files_are_not_synced: 0,
    names_are_not_synced: 3,
    consumers_see_what_is_not_synced: 1,
    truncation_does_not_lower_the_recovery_point: 0,
    truncation_forgets_the_sync_that_is_under_way: 2,
    truncation_comes_before_its_checkpoint: 5,
    truncation_keeps_the_producers: 0,
    a_failed_write_is_not_cut_off: 0,
    a_failed_write_keeps_its_producers: 0,
    late_index_entries_are_believed: 0,
    epochs_are_not_stored: 6,
    aborted_transactions_are_not_noted: 1,
    duplicates_are_not_known: 0,
}


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_the_model_finds(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    if EXAMPLES:
        steps = search(plant, monkeypatch)
        if UPDATING:
            pin(plant, steps)
        return
    example = read_examples()[plant.__name__]
    replay(example)  # without the bug nothing is wrong
    plant(monkeypatch)
    # If it is not found any more, because the log or its model are others now, search anew:
    # MOLDAU_UPDATE_GOLDEN=1 MOLDAU_PLANT_EXAMPLES=2000.
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever a bug leads to
        replay(example)


def search(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Find an example that the bug fails; return its steps."""
    plant(monkeypatch)
    machine = seed(PLANTS[plant])(type("PlantedMachine", (LogMachine,), {}))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever a bug leads to
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=40,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    lines = "\n".join(caught.value.__notes__).splitlines()
    steps = [line.removeprefix("state.") for line in lines if line.startswith("state.")]
    return [step for step in steps if step not in ("laws_hold()", "teardown()")]


def replay(steps: Sequence[str]) -> None:
    """Do what Hypothesis has written down, and look at the laws after every step."""
    machine = LogMachine()
    rules = {name: getattr(machine, name) for name in dir(machine) if not name.startswith("_")}
    for step in steps:
        eval(step, {"__builtins__": {}}, rules)
        machine.laws_hold()


def read_examples() -> dict[str, list[str]]:
    """Return the steps by the bug's name."""
    examples: dict[str, list[str]] = {}
    for line in PINNED.read_text().splitlines():
        if not line.startswith("    "):
            steps = examples[line] = []
        else:
            steps.append(line.strip())
    return examples


def pin(plant: Plant, steps: Sequence[str]) -> None:
    """Keep an example instead of the one before."""
    examples = read_examples() if PINNED.exists() else {}
    examples[plant.__name__] = [*steps]
    lines = [line for name in sorted(examples) for line in (name, *_indented(examples[name]))]
    PINNED.write_text("\n".join([*lines, ""]))


def _indented(steps: Sequence[str]) -> list[str]:
    return [f"    {step}" for step in steps]
