"""Virtual time: one heap of events for all machines, and chance that comes from the seed."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Final, TypeAlias, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000
MICROSECOND: Final = 1_000

_Event: TypeAlias = tuple[int, float, int, Callable[..., object], tuple[object, ...]]


class Chance:
    """Streams of random numbers, each by its name, so that one does not disturb the other."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[str, Random] = {}

    def stream(self, name: str) -> Random:
        """Return the stream of that name; the same one each time."""
        found = self._streams.get(name)
        if found is None:
            # Seeded with text, a Random hashes it with SHA-512, which no hash seed changes.
            found = self._streams[name] = Random(f"{self._seed}/{name}")
        return found


class Scheduler:
    """Events of all machines in the order of their times; time jumps from one to the next.

    Events of the same time come in an order that the seed chooses.
    """

    def __init__(self, chance: Chance) -> None:
        self.now = 0
        """Virtual nanoseconds since the world began; no machine's clock shows them."""
        self.steps = 0
        """How many events there were."""
        self._heap: list[_Event] = []
        self._number = 0
        self._tie = chance.stream("order").random

    def at(
        self,
        time_ns: int,
        do: Callable[[*Arguments], object],
        *args: *Arguments,
    ) -> None:
        """Have something done at a time, at once if that is past."""
        self._number += 1
        heappush(self._heap, (max(time_ns, self.now), self._tie(), self._number, do, args))

    def after(self, wait_ns: int, do: Callable[[*Arguments], object], *args: *Arguments) -> None:
        """Have something done after a while."""
        self.at(self.now + wait_ns, do, *args)

    def step(self, until_ns: int) -> bool:
        """Do what is next; False if nothing is due until then, and it is that time."""
        heap = self._heap
        if not heap or heap[0][0] > until_ns:
            self.now = max(self.now, until_ns)
            return False
        self.now, _, _, do, args = heappop(heap)
        self.steps += 1
        do(*args)
        return True
