"""A port that stays a broker's own while nobody listens on it."""

import socket
import sys
from typing import Final

HOST: Final = "127.0.0.1"


class ReservedPort:
    """A free port of this machine.

    On Linux a socket that is bound and never listens keeps it for whoever reuses addresses, as our
    listener does: no other process is given it while the broker restarts or refuses connections,
    and who connects then is refused. Elsewhere that is not to be had, and the port is only likely
    to be free again.
    """

    def __init__(self) -> None:
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holder.bind((HOST, 0))
        self.number: int = self._holder.getsockname()[1]
        # Afterwards: a port that is chosen with it might be another broker's reservation.
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "linux":
            self._holder.close()

    def release(self) -> None:
        """Let others have it."""
        self._holder.close()
