"""Random schedules of the sink's protocol, with crashes at every step: nothing twice, nothing lost.

MOLDAU_SINK_SEEDS=20000 runs more of them. Bugs are planted in what a worker keeps of the ledger,
each of which they find.
"""

import os
from collections.abc import Callable, Generator
from itertools import product
from typing import Any

import pytest

from moldau.pipelines.connector.sink.ledger_copy import LedgerCopy
from tests.unit.pipelines.connector import sink_world
from tests.unit.pipelines.connector.ledger_topic import LedgerTopic
from tests.unit.pipelines.connector.sink_world import BATCHES, World

SEEDS = int(os.environ.get("MOLDAU_SINK_SEEDS", "100"))
PLANT_SEEDS = 300
"""Of each kind of world: far more than it takes to find a bug."""


def everything(world: World) -> set[tuple[int, int]]:
    return {(batch, each) for batch in range(BATCHES) for each in range(world.partitions)}


def play(seeds: int, *, is_v2: bool, times_out: bool, has_zombies: bool) -> None:
    lost_count = 0
    for seed in range(seeds):
        world = World(seed, times_out=times_out, has_zombies=has_zombies, is_v2=is_v2)
        world.play(250)
        if world.lost is None:
            assert set(world.cluster.visible) == everything(world), seed
        else:
            lost_count += 1
            assert times_out or has_zombies, (seed, world.lost)
    assert lost_count < seeds / 2  # else it says little about the rest


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("has_zombies", [False, True])
def test_every_batch_is_visible_once_or_an_error_says_so(
    is_v2: bool, times_out: bool, has_zombies: bool
) -> None:
    play(SEEDS, is_v2=is_v2, times_out=times_out, has_zombies=has_zombies)


# Bugs.


def a_ledger_is_read_once(patch: pytest.MonkeyPatch) -> None:
    read_on = LedgerCopy.read_on

    def wrong(self: LedgerCopy, *args: Any, **how: Any) -> Generator[Any, Any, None]:
        if self._place is None:
            yield from read_on(self, *args, **how)

    patch.setattr(LedgerCopy, "read_on", wrong)


def what_was_aborted_is_read(patch: pytest.MonkeyPatch) -> None:
    end = LedgerTopic.end
    patch.setattr(LedgerTopic, "end", lambda self, batch, **_: end(self, batch, is_commit=True))


def whoever_opens_the_ledger_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    read = sink_world.Cluster.read_ledger
    patch.setattr(
        sink_world.Cluster, "read_ledger", lambda self, who, **_: read(self, who, waits=False)
    )


def play_everything() -> None:
    for is_v2, times_out, has_zombies in product([False, True], repeat=3):
        play(PLANT_SEEDS, is_v2=is_v2, times_out=times_out, has_zombies=has_zombies)


PLANTS = (
    a_ledger_is_read_once,
    what_was_aborted_is_read,
    whoever_opens_the_ledger_waits_for_nobody,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        play_everything()
