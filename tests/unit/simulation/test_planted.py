"""Bugs that are planted in a node: a run names the law that each of them breaks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from moldau.groups import machine
from moldau.groups.machine import GroupMachine
from moldau.protocol.stored.offsets import OffsetCommitKey
from moldau.simulation.process_disk import ProcessDisk
from moldau.simulation.restarts import NodeRestarts
from moldau.simulation.run import SimulatedRun
from moldau.transactions import end

pytestmark = pytest.mark.filterwarnings("ignore::moldau.client.errors.UndeliveredWarning")

Patch = pytest.MonkeyPatch


def acknowledge_before_sync(patch: Patch) -> None:
    """A sync of records does nothing."""
    sync = ProcessDisk.sync

    def pretend(disk: ProcessDisk, path: str) -> None:
        if "events-" not in path:
            sync(disk, path)

    patch.setattr(ProcessDisk, "sync", pretend)


def lose_offset_commits(patch: Patch) -> None:
    """The group coordinator forgets some of what it was told."""
    replay, number = machine._REPLAY[OffsetCommitKey], count()

    def forget(*arguments: Any) -> None:
        if next(number) % 5:
            replay(*arguments)

    patch.setitem(machine._REPLAY, OffsetCommitKey, forget)  # type: ignore[arg-type]


def forget_transactional_offsets(patch: Patch) -> None:
    """A transaction's offsets do not count when it is committed."""
    finish = GroupMachine.end_transaction

    def forget(group: GroupMachine, producer_id: Any, *, is_commit: bool) -> None:
        finish(group, producer_id, is_commit=False)

    patch.setattr(GroupMachine, "end_transaction", forget)


def commit_what_is_aborted(patch: Patch) -> None:
    """The markers of aborted transactions commit them."""
    markers_of = end.markers_of

    def commit(prepared: Any) -> Any:
        return replace(markers_of(prepared), is_commit=True)

    patch.setattr(end, "markers_of", commit)


CASES: list[tuple[Callable[[Patch], None], tuple[str, ...], tuple[str, ...]]] = [
    (acknowledge_before_sync, ("power loss",), ("committed records", "lost write", "inconsistent")),
    (lose_offset_commits, (), ("stale read",)),
    (forget_transactional_offsets, (), ("stale read", "torn transaction", "processed twice")),
    (commit_what_is_aborted, (), ("aborted read", "precommitted read")),
]


@pytest.mark.parametrize(("plant", "kinds", "laws"), CASES)
def test_a_planted_bug_breaks_a_law(
    monkeypatch: Patch,
    plant: Callable[[Patch], None],
    kinds: tuple[str, ...],
    laws: tuple[str, ...],
):
    plant(monkeypatch)
    violations = []
    for seed in seeds_that_sync():
        faults = NodeRestarts(every_seconds=8, kinds=kinds) if kinds else None
        violations.append(SimulatedRun(seed, seconds=20, faults=faults).execute().violation)
        if any(law in violations[-1] for law in laws):
            return
    pytest.fail(f"none of {laws} is broken: {violations}")


def seeds_that_sync() -> Iterator[int]:
    """Yield some seeds of runs with durability=fsync."""
    found = (seed for seed in count(100) if SimulatedRun(seed).may_lose_power)
    return (next(found) for _ in range(6))
