"""What a test's broker has counted."""

from moldau.testing.broker import Broker


def connections_accepted(broker: Broker) -> int:
    """Return how many connections clients have opened since the broker was started."""
    return broker._running.hosted.listener._accepted.value


def connections_open(broker: Broker) -> int:
    """Return how many connections there are."""
    return len(broker._running.hosted.listener._clients)
