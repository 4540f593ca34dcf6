"""How long a caller waits for a coordinator's records to be committed."""

from collections.abc import Callable

from moldau.broker.deadlines import Expiring, ExpiryQueue
from moldau.broker.ports import Environment


class Patience:
    """One for all shards of a kind: many that wait, one timer."""

    def __init__(self, environment: Environment, wait_ms_max: Callable[[], int]) -> None:
        self._environment = environment
        self._wait_ms_max = wait_ms_max
        self._deadlines = ExpiryQueue(environment)

    def begin(self, waiting: Expiring) -> None:
        """Have something expire if it takes too long from now on."""
        now = self._environment.now().monotonic
        self._deadlines.add(now + self._wait_ms_max() / 1000, waiting)
