"""Random schedules of the sink's protocol, with crashes at every step: nothing twice, nothing lost.

MOLDAU_SINK_SEEDS=20000 runs more of them.
"""

import os

import pytest

from tests.unit.pipelines.connector.sink_world import BATCHES, World

SEEDS = int(os.environ.get("MOLDAU_SINK_SEEDS", "100"))


def everything(world: World) -> set[tuple[int, int]]:
    return {(batch, each) for batch in range(BATCHES) for each in range(world.partitions)}


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("has_zombies", [False, True])
def test_every_batch_is_visible_once_or_an_error_says_so(
    is_v2: bool, times_out: bool, has_zombies: bool
) -> None:
    lost_count = 0
    for seed in range(SEEDS):
        world = World(seed, times_out=times_out, has_zombies=has_zombies, is_v2=is_v2)
        world.play(250)
        if world.lost is None:
            assert set(world.cluster.visible) == everything(world), seed
        else:
            lost_count += 1
            assert times_out or has_zombies, (seed, world.lost)
    assert lost_count < SEEDS / 2  # else it says little about the rest
