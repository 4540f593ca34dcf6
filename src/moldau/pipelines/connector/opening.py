"""Clients of the connector: a broker that is being started again is waited for."""

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from moldau.client.errors import UnreachableError

WAIT_SECONDS: Final = 10.0
"""A query must not fail because a broker restarts; whoever names a wrong one must hear soon."""
PAUSE_SECONDS: Final = 0.1

AnyClient = TypeVar("AnyClient")


def open_client(kind: Callable[..., AnyClient], **arguments: Any) -> AnyClient:
    """Return a client that has found its cluster; alone, it would try once."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return kind(**arguments)
        except UnreachableError:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)
