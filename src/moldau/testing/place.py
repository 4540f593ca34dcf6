"""What the clock and the faults of a broker need from it."""

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from moldau.testing.hosted_node import HostedNode

T = TypeVar("T")


class Place(Protocol):
    """A broker on a loop of its own."""

    @property
    def hosted(self) -> HostedNode:
        """What is on its loop."""

    def call(self, work: Coroutine[Any, Any, T], /) -> T:
        """Run something there, and wait for it."""
