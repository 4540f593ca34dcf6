import os

import pytest

from moldau.client.outbox_events import Delivered
from tests.unit.client.outbox_world import PARTITIONS, World

SEEDS = int(os.environ.get("MOLDAU_OUTBOX_SEEDS", "50"))
STEPS = 300


def check_laws(world: World, *, may_repeat: bool = False) -> None:
    leaves = world.leaves()
    assert set(world.results) == set(leaves), "every batch has a result"
    for partition in range(PARTITIONS):
        stored = world.replicas[partition].values
        if not may_repeat:
            assert len(set(stored)) == len(stored), "stored twice"
            assert stored == sorted(stored), "out of order"
        for parcel in leaves:
            result = world.results[parcel]
            if parcel.partition == partition and isinstance(result, Delivered):
                start = result.base_offset
                assert stored[start : start + parcel.record_count] == parcel.values, "lost"


@pytest.mark.parametrize("group", range(10))
def test_nothing_is_lost_or_stored_twice_and_order_is_kept(group: int) -> None:
    delivered = 0
    for seed in range(group * SEEDS // 10, (group + 1) * SEEDS // 10):
        world = World(seed)
        try:
            for _ in range(STEPS):
                world.step()
            world.calm_down()
            check_laws(world)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        delivered += sum(isinstance(each, Delivered) for each in world.results.values())
    assert delivered > SEEDS, "hardly anything arrives"


def test_without_idempotence_nothing_delivered_is_lost() -> None:
    for seed in range(SEEDS // 5):
        world = World(seed, is_idempotent=False)
        for _ in range(STEPS):
            world.step()
        world.calm_down()
        check_laws(world, may_repeat=True)
