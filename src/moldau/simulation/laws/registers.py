"""Values that are written again and again, such as committed offsets, and what a read may return.

A read returns a write that began before the read ended, and that no other acknowledged write is
known to have followed before the read began. A write whose end is unknown may take effect at any
time.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Final, Generic, TypeVar

from moldau.simulation.laws.violation import LawViolation

READ_SECONDS_MAX: Final = 600.0
"""How long a read takes at most: what was replaced so long ago is forgotten."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class WriteNote(Generic[Value]):
    """A write to a register."""

    value: Value
    begun: float
    ended: float = inf
    """When it was acknowledged; infinite if no client knows that it was."""


@dataclass(slots=True)
class _Register(Generic[Value]):
    writes: list[WriteNote[Value]] = field(default_factory=list)


class Registers(Generic[Key, Value]):
    """The registers of one kind, by key."""

    def __init__(self, kind: str, initial: Value) -> None:
        self._kind = kind
        self._initial = initial
        self._registers: dict[Key, _Register[Value]] = {}

    def begin_write(self, key: Key, value: Value, now: float) -> WriteNote[Value]:
        """Note a write before it leaves."""
        write = WriteNote(value, now)
        self._register(key).writes.append(write)
        return write

    def end_write(self, key: Key, write: WriteNote[Value], now: float) -> None:
        """Note that a write was acknowledged."""
        write.ended = now
        register = self._register(key)
        old = max(
            (each.begun for each in register.writes if each.ended < now - READ_SECONDS_MAX),
            default=-inf,
        )
        register.writes = [each for each in register.writes if not each.ended < old]

    def refuse_write(self, key: Key, write: WriteNote[Value]) -> None:
        """Note that a write had no effect."""
        self._register(key).writes.remove(write)

    def read(self, key: Key, value: Value, begun: float) -> None:
        """Check a read that has ended now."""
        self.read_one_of(key, (value,), begun)

    def read_one_of(self, key: Key, values: Collection[Value], begun: float) -> None:
        """Check a read that has returned one of some values, which its client cannot tell apart."""
        writes = self._register(key).writes
        latest = max((each.begun for each in writes if each.ended < begun), default=-inf)
        possible = [each.value for each in writes if not each.ended < latest]
        if not any(value in possible for value in values):
            found = " or ".join(map(str, values))
            raise LawViolation(
                "stale read", f"{self._kind} of {key} is {found}, and may be {possible}"
            )

    def _register(self, key: Key) -> _Register[Value]:
        register = self._registers.get(key)
        if register is None:
            # What was there before all writes.
            register = self._registers[key] = _Register([WriteNote(self._initial, -inf, -inf)])
        return register
