"""A coordinator's partition over random schedules: disks are full, and coordinators move.

The laws: who is told a number finds it, or a later one, from then on; who is told that a number is
set finds it, too; and everybody is answered.
"""

import os
import random
from contextlib import suppress

from moldau.broker.coordinators.shard import ShardState
from moldau.kernel.disk import DiskFullError
from moldau.log.config import Durability
from moldau.protocol.errors import ErrorCode
from tests.unit.broker.coordinators.register import Get, Put, RegisterWorld

SEEDS = int(os.environ.get("MOLDAU_SHARD_SEEDS", "60"))
STEPS = 80
NAMES = "ab"
MAY_ASK_AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class Model:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.register = RegisterWorld(Durability.FSYNC)
        self.disk = self.register.world.disk
        self.capacity = self.disk._capacity_bytes
        self.next = 0
        self.submitted = dict.fromkeys(NAMES, -1)
        self.known = dict.fromkeys(NAMES, -1)
        """The least that anybody must be told who asks from now on."""
        self.asked = self.answered = self.told = 0

    def step(self) -> None:
        self.random.choice(
            [self.put] * 4
            + [self.get] * 4
            + [self.write] * 3
            + [self.sync] * 2
            + [self.rest] * 2
            + [self.fill, self.empty, self.empty, self.move]
        )()

    def put(self) -> None:
        name, number = self.random.choice(NAMES), self.next
        self.next += 1
        self.asked += 1
        self.submitted[name] = number

        def answered(answer: object) -> None:
            self.answered += 1
            if answer == "done":
                self.known[name] = max(self.known[name], number)
            else:
                assert answer.code in MAY_ASK_AGAIN  # type: ignore[attr-defined]

        self.register.submit(Put({name: number}), answered)

    def get(self) -> None:
        name = self.random.choice(NAMES)
        least, most = self.known[name], self.submitted[name]
        self.asked += 1

        def answered(answer: object) -> None:
            self.answered += 1
            if isinstance(answer, int | str):
                number = -1 if answer == "none" else int(answer)
                assert least <= number <= most, f"{name}: {number}, not {least} to {most}"
                self.known[name] = max(self.known[name], number)
                self.told += 1

        self.register.submit(Get(name), answered)

    def write(self) -> None:
        self.register.world.write_staged()

    def sync(self) -> None:
        self.register.world.write_staged()
        with suppress(DiskFullError):
            self.register.world.sync()

    def rest(self) -> None:
        self.register.run()

    def fill(self) -> None:
        self.disk._capacity_bytes = self.disk._used_bytes

    def empty(self) -> None:
        self.disk._capacity_bytes = self.capacity

    def move(self) -> None:
        """Another coordinator takes over, with what is in the log."""
        self.register.world.write_staged()
        self.register.shard.close()
        self.register.shard = self.register.start()

    def calm_down(self) -> None:
        self.empty()
        for _ in range(3):
            self.sync()
            self.rest()


def test_what_is_told_is_found_from_then_on() -> None:
    told = 0
    for seed in range(SEEDS):
        model = Model(seed)
        try:
            for _ in range(STEPS):
                model.step()
            model.calm_down()
            assert model.register.shard.state is ShardState.ACTIVE
            for _ in range(10):
                model.get()
            assert model.answered == model.asked, "everybody is answered"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        told += model.told
    assert told > SEEDS * STEPS / 20, "hardly anybody is told anything"
