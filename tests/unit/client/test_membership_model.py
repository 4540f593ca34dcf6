import os

import pytest

from tests.unit.client.membership_world import World

SEEDS = int(os.environ.get("MOLDAU_MEMBERSHIP_SEEDS", "10"))
STEPS = 600
WORLDS = [
    ("classic", "range"),
    ("classic", "roundrobin"),
    ("classic", "sticky"),
    ("classic", "cooperative-sticky"),
    ("consumer", "range"),
]


def play(seed: int, protocol: str, strategy: str) -> World:
    world = World(seed, protocol, strategy)
    try:
        for _ in range(STEPS):
            world.step()
        world.calm_down()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return world


@pytest.mark.parametrize(("protocol", "strategy"), WORLDS)
def test_nothing_is_read_by_two_members_and_all_is_read_in_the_end(
    protocol: str, strategy: str
) -> None:
    reads = sum(play(seed, protocol, strategy).reads for seed in range(SEEDS))
    assert reads > 100 * SEEDS, "hardly anything is read"


@pytest.mark.long
@pytest.mark.parametrize(("protocol", "strategy"), WORLDS)
def test_over_many_schedules(protocol: str, strategy: str) -> None:
    for seed in range(SEEDS, SEEDS * 10):
        play(seed, protocol, strategy)
