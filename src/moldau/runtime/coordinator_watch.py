"""How coordinators fare, counted and told to a person."""

import logging
from typing import Final

from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.runtime.metrics import Metrics

logger: Final = logging.getLogger("moldau.coordinators")


class CoordinatorWatch:
    """A `broker.ports.ShardWatch`."""

    def __init__(self, metrics: Metrics) -> None:
        self._load_seconds = metrics.histogram(
            "moldau_coordinator_load_seconds", "How long a coordinator's partition took to replay."
        )
        self._lost = metrics.counter(
            "moldau_coordinator_restarts_total",
            "How often a coordinator began again with its log, because it could not record.",
        )

    def loaded(self, partition: TopicPartition, record_count: int, seconds: float) -> None:
        """Take the time."""
        self._load_seconds.observe(seconds)
        if record_count:
            logger.info("%s: %d records replayed in %.3f s", partition, record_count, seconds)

    def unreadable(self, partition: TopicPartition, error: ProtocolError) -> None:
        """Tell what is wrong with the log."""
        logger.error("%s cannot be replayed, its coordinator is not here: %s", partition, error)

    def lost(self, partition: TopicPartition, error: Exception) -> None:
        """Count it, and tell why."""
        self._lost.value += 1
        logger.warning("%s: what was decided could not be recorded: %s", partition, error)

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """Tell of an error of ours."""
        logger.error("the coordinator of %s has failed", partition, exc_info=error)
