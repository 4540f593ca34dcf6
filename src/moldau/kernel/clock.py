"""Time as an argument."""

from typing import NamedTuple


class Instant(NamedTuple):
    """Now, on both clocks: `monotonic` for every timeout, `wall_ms` for what is stored or shown.

    A jump of the wall clock must expire nothing that waits.
    """

    monotonic: float  # seconds
    wall_ms: int
