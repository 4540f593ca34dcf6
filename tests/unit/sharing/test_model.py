"""Random schedules of a share group: its laws hold."""

import os

import pytest

from tests.unit.sharing.model import Model

SEEDS = int(os.environ.get("MOLDAU_SHARE_SEEDS", "60"))


@pytest.mark.parametrize("seed", range(25))
def test_the_laws_hold(seed: int) -> None:
    Model(seed).run(200)


@pytest.mark.long
def test_the_laws_hold_for_long() -> None:
    for seed in range(1000, 1000 + SEEDS):
        try:
            Model(seed).run(400)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
