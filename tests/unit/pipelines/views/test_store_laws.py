"""Whatever happens, a store is the plain result of the records before its positions.

A crash at any point is a copy of the files at that point: what the process had not handed to the
system is not in them.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.store import Store
from tests.unit.pipelines.views.stores import PLAIN, Kept, latest_rows, open_store, stored_rows

SEEDS = int(os.environ.get("MOLDAU_VIEW_SEEDS", "5"))
STEPS = 60
WINDOWED = KeyShape({"user": "string", "window": "struct<start:timestamp,end:timestamp>"})


class _Killed(BaseException):
    pass


class _KilledBefore(dict[int, int]):
    """Positions before which the process dies: the rows are written, and not committed."""

    def __init__(self, positions: dict[int, int], die) -> None:
        super().__init__(positions)
        self._die = die

    def items(self) -> Iterator[tuple[int, int]]:
        self._die()
        raise _Killed


class World:
    """A topic, its store, and what may happen to them."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.lives = 0
        self.shape = self.random.choice([PLAIN, WINDOWED])
        self.store = self._open(root / "0")
        self.recreate()

    def _open(self, folder: Path) -> Store:
        self.folder = folder
        return open_store(folder, shape=self.shape)

    def check(self) -> None:
        positions = self.store.positions
        read = [
            each
            for partition, log in enumerate(self.logs)
            for each in log
            if self.read_from.get(partition, 0) <= each.offset < positions.get(partition, 0)
        ]
        assert stored_rows(self.store) == latest_rows(read, self.shape)
        assert self.store.scan(1).positions == positions

    # What happens.

    def recreate(self) -> None:
        self.topic_id = self.random.randbytes(16)
        self.logs: list[list[Kept]] = [[] for _ in range(self.random.randint(1, 3))]
        self.starts = [0] * len(self.logs)
        self.read_from: dict[int, int] = {}
        self.store.adopt(self.topic_id)

    def grow(self) -> None:
        self.logs.append([])
        self.starts.append(0)

    def produce(self) -> None:
        for _ in range(self.random.randint(1, 30)):
            partition = self.random.randrange(len(self.logs))
            log = self.logs[partition]
            # Transactions leave gaps.
            offset = (log[-1].offset + 1 if log else 0) + self.random.choice([0, 0, 0, 2])
            value = None if self.random.random() < 0.3 else self.random.randbytes(4)
            log.append(Kept(partition, offset, self._key(), value, self.random.randrange(50)))

    def _key(self) -> bytes | None:
        name = self.random.choice("abcdef")
        if self.random.random() < 0.05:
            return None
        if self.shape is PLAIN:
            return name.encode()
        space = self.random.choice(["", " "])
        minute = self.random.randrange(3)
        start, end = (f"2026-01-01T12:0{at}:00Z" for at in (minute, minute + 1))
        return f'{{"user":{space}"{name}","window":{{"start":"{start}","end":"{end}"}}}}'.encode()

    def delete_records(self) -> None:
        partition = self.random.randrange(len(self.logs))
        log = self.logs[partition]
        if log:
            self.starts[partition] = self.random.choice(log).offset + 1

    def _next_batch(self) -> tuple[list[Kept], dict[int, int]]:
        records: list[Kept] = []
        positions: dict[int, int] = {}
        for partition, log in enumerate(self.logs):
            position = self.store.positions.get(partition, 0)
            if position < self.starts[partition]:
                self.store.forget([partition])
                position = self.read_from[partition] = self.starts[partition]
                positions[partition] = position
            ahead = [each for each in log if each.offset >= position]
            if taken := ahead[: self.random.randint(0, len(ahead))]:
                records += taken
                positions[partition] = taken[-1].offset + 1
        return records, positions

    def follow(self) -> None:
        records, positions = self._next_batch()
        self.store.apply(records, positions, now_ms=0)

    def restart(self) -> None:
        self.store.close()
        self.store = self._open(self.folder)

    def crash(self) -> None:
        """Die between two batches, without closing anything."""
        copied = self._copy()
        self.store.close()
        self.store = self._open(copied)

    def crash_in_batch(self) -> None:
        copies: list[Path] = []
        records, positions = self._next_batch()
        doomed = _KilledBefore(positions, lambda: copies.append(self._copy()))
        with pytest.raises(_Killed):
            self.store.apply(records, doomed, now_ms=0)
        self.check()
        self.store.close()
        self.store = self._open(copies[0])

    def _copy(self) -> Path:
        self.lives += 1
        copied = self.root / str(self.lives)
        shutil.copytree(self.folder, copied)
        # It is the next process's own to make: the memory that the dead one shared with readers.
        (copied / "view.sqlite-shm").unlink(missing_ok=True)
        return copied

    def sweep_nothing(self) -> None:
        self.store.sweep(before_ms=0, count_max=10)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_store_is_what_was_before_its_positions(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    steps = {
        world.produce: 30,
        world.follow: 30,
        world.crash_in_batch: 5,
        world.crash: 5,
        world.restart: 5,
        world.grow: 3,
        world.delete_records: 3,
        world.recreate: 1,
        world.sweep_nothing: 3,
    }
    for step in world.random.choices(list(steps), weights=list(steps.values()), k=STEPS):
        step()
        world.check()
    ends = [log[-1].offset + 1 if log else 0 for log in world.logs]
    while any(world.store.positions.get(each, 0) < end for each, end in enumerate(ends)):
        world.follow()
    world.check()
    world.store.close()
