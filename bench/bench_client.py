"""Our client beside confluent-kafka: same process, same broker, in turns."""

from collections.abc import Callable

from bench.client_consumer import consumer
from bench.client_producer import producer
from bench.row import Row

PARTS: dict[str, Callable[[], list[Row]]] = {"producer": producer, "consumer": consumer}


def rows(only: str = "") -> list[Row]:
    """Measure everything, or one of the parts."""
    if only and only not in PARTS:
        raise SystemExit(f"bench: client has no {only}; there are {', '.join(PARTS)}")
    return [row for name in PARTS if only in ("", name) for row in PARTS[name]()]
