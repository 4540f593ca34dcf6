"""How many connections there may be: in all, from one address, and new ones in a second."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from moldau.metadata.settings.broker import BrokerSettings

logger: Final = logging.getLogger(__name__)

_MAPPED: Final = "::ffff:"


def plain_host(host: str) -> str:
    """Return an IPv4 address that came through an IPv6 socket as what it is."""
    return host.removeprefix(_MAPPED) if host.startswith(_MAPPED) and "." in host else host


class ConnectionQuota:
    """Counts connections against the settings, which may change at any time."""

    def __init__(self) -> None:
        self.total = 0
        self._by_host: Counter[str] = Counter()
        self._second = 0
        self._accepted = 0
        self.overrides: Mapping[str, int] = {}
        """How many there may be from addresses that have a number of their own."""

    def wait_seconds(self, settings: BrokerSettings, now: float) -> float | None:
        """Say how long to leave new connections waiting; None: until one is closed."""
        if self.total >= settings.max_connections:
            return None
        if int(now) == self._second and self._accepted >= settings.max_connection_creation_rate:
            return self._second + 1 - now
        return 0.0

    def admit(self, host: str, settings: BrokerSettings, now: float) -> bool:
        """Count a connection in, or say that its address has enough."""
        if int(now) != self._second:
            self._second = int(now)
            self._accepted = 0
        self._accepted += 1
        if self._by_host[host] >= self._host_max(host, settings):
            return False
        self._by_host[host] += 1
        self.total += 1
        return True

    def release(self, host: str) -> None:
        """Count a connection out."""
        self.total -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def _host_max(self, host: str, settings: BrokerSettings) -> int:
        return self.overrides.get(host, settings.max_connections_per_ip)


async def resolve_overrides(
    text: str, resolve: Callable[[str], Awaitable[Sequence[str]]]
) -> dict[str, int]:
    """Return the maximum of each address in `host:count,host:count`; unknown hosts have none.

    A name may take seconds to look up, so it is looked up beside the loop.
    """
    found: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = pair.rpartition(":")
        try:
            addresses = await resolve(name.strip())
        except (OSError, UnicodeError) as error:
            logger.warning("max.connections.per.ip.overrides: %s: %s", name, error)
            continue
        found |= {address: int(count) for address in addresses}
    return found
