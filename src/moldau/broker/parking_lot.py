"""Fetches that wait for more to read."""

from typing import Final, Protocol

from moldau.broker.deadlines import ExpiryQueue
from moldau.broker.ports import Environment

LOOKS_PER_TURN: Final = 128
"""How many look again before others have their turn on the loop."""


class Parked(Protocol):
    """A held fetch: it waits until its deadline, or until something wakes it."""

    is_done: bool
    """Whether it waits no longer."""

    def look_again(self) -> None:
        """Go on if there is now what it waits for."""

    def expire(self) -> None:
        """Go on with what there is."""


class ParkingLot:
    """Holds parked fetches: woken as often as something happens, they look again once per turn."""

    __slots__ = ("_deadlines", "_environment", "_is_settling", "_woken")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._deadlines = ExpiryQueue(environment)
        self._woken: dict[Parked, None] = {}
        self._is_settling = False

    def __len__(self) -> int:
        return len(self._deadlines)

    def park(self, parked: Parked, until: float) -> None:
        """Let something wait until a (monotonic) time."""
        self._deadlines.add(until, parked)

    def wake(self, parked: Parked) -> None:
        """Let it look again, soon: when everything that happens in this turn has happened."""
        self._woken[parked] = None
        if not self._is_settling:
            self._settle_soon()

    def is_woken(self, parked: Parked) -> bool:
        """Whether it is to look again soon."""
        return parked in self._woken

    def settle(self) -> None:
        """Let those that were woken look again; a shell calls it at the end of a turn as well."""
        if not self._woken:
            return
        woken = list(self._woken)[:LOOKS_PER_TURN]
        for parked in woken:
            del self._woken[parked]
        self._is_settling = False
        if self._woken:
            self._settle_soon()
        for parked in woken:
            if not parked.is_done:
                parked.look_again()

    def let_go(self) -> None:
        """Have all go on with what there is: nothing more will come."""
        self._deadlines.expire_all()

    def _settle_soon(self) -> None:
        self._is_settling = True
        self._environment.at(self._environment.now().monotonic, self.settle)
