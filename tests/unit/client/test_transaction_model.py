import os

import pytest

from moldau.client.transaction import TxnState
from tests.unit.client.transaction_world import TransactionWorld

SEEDS = int(os.environ.get("MOLDAU_TRANSACTION_SEEDS", "200"))
STEPS = 400


def check_laws(world: TransactionWorld) -> None:
    for attempt in world.attempts:
        everything = [
            (place, value) for place, values in attempt.values.items() for value in values
        ]
        visible = [each for each in everything if each[1] in world.logs[each[0]].visible]
        if attempt.result is True:
            assert visible == everything, "committed, and something is missing"
        elif attempt.result is False:
            assert not visible, "aborted, and something is visible"
        else:
            assert visible in ([], everything), "some is visible and some is not"
    for log in world.logs.values():
        assert len(set(log.visible)) == len(log.visible), "stored twice"
        assert log.visible == sorted(log.visible), "out of order"


@pytest.mark.parametrize("is_v2", [True, False])
def test_transactions_are_visible_as_a_whole_or_not_at_all(*, is_v2: bool) -> None:
    committed = dead = 0
    for seed in range(SEEDS):
        world = TransactionWorld(seed, is_v2=is_v2)
        try:
            for _ in range(STEPS):
                world.step()
            world.calm_down()
            if world.transactions.state is TxnState.READY:
                world.succeed()
                if world.transactions.state is TxnState.READY:
                    assert world.attempts[-1].result, "a producer that is not dead goes on"
            check_laws(world)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, is_v2={is_v2}: {error}") from error
        committed += sum(each.result is True for each in world.attempts)
        dead += world.transactions.state is TxnState.DEAD
    assert committed > SEEDS, "hardly anything is committed"
    assert 0 < dead < SEEDS, "sometimes a producer is fenced"
