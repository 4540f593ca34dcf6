"""Several answers that become one."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

Part = TypeVar("Part")


class Gathering(Generic[Part]):
    """Calls `then` with all parts in their order, as soon as the last one is there."""

    def __init__(self, count: int, then: Callable[[Sequence[Part]], None]) -> None:
        self._parts: list[Part | None] = [None] * count
        self._missing = count
        self._then = then
        if not count:
            then(())

    def add(self, number: int, part: Part) -> None:
        """Take a part; each comes once."""
        self._parts[number] = part
        self._missing -= 1
        if not self._missing:
            self._then(cast("list[Part]", self._parts))
