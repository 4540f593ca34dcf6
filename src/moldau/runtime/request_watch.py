"""Requests that went wrong, counted and told to a person."""

import logging
from typing import Final

from moldau.broker.calls import Call
from moldau.kernel.errors import ProtocolError
from moldau.runtime.metrics import Metrics

logger: Final = logging.getLogger("moldau.requests")

QUIET_SECONDS: Final = 1.0
"""A line about a malformed request is followed by silence: whoever floods us writes no log."""


class RequestWatch:
    """A `broker.router.Watch`."""

    def __init__(self, metrics: Metrics) -> None:
        self._malformed = metrics.counter(
            "moldau_requests_malformed_total",
            "Requests that could not be understood; their connections were closed.",
        )
        self._failed = metrics.counter(
            "moldau_requests_failed_total", "Requests that ended in an error of the broker."
        )
        self._quiet_until = float("-inf")
        self._untold = 0

    def malformed(self, call: Call, error: ProtocolError) -> None:
        """Count it; tell of the first of those that come together."""
        self._malformed.value += 1
        now = call.received.monotonic
        if now < self._quiet_until:
            self._untold += 1
            return
        self._quiet_until = now + QUIET_SECONDS
        others = f" ({self._untold} like it before were not told)" if self._untold else ""
        self._untold = 0
        peer = call.peer
        logger.warning("closing the connection of %s:%d: %s%s", peer.host, peer.port, error, others)

    def failed(self, call: Call, error: Exception) -> None:
        """Tell of an error of ours, with everything that helps to find it."""
        self._failed.value += 1
        logger.error(
            "request %d of %s could not be answered", call.api_key, call.peer.host, exc_info=error
        )
