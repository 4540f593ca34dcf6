"""Laws of classic groups over random schedules."""

import os

import pytest

from tests.unit.groups.classic.model import Model

SEEDS = int(os.environ.get("MOLDAU_CLASSIC_SEEDS", "30"))
STEPS = 250


@pytest.mark.parametrize("part", range(3))
def test_laws_hold(part: int) -> None:
    seeds = range(part * SEEDS // 3, (part + 1) * SEEDS // 3)
    assigned = 0
    for seed in seeds:
        model = Model(seed)
        try:
            for _ in range(STEPS):
                model.step()
            model.calm_down()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assigned += len(model.told)
    assert assigned > 3 * len(seeds), "hardly any generation is assigned"
