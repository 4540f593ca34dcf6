"""The laws that a node's logs and coordinators obey, step by step and over restarts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from moldau.broker.coordinators.shard import ShardState
from moldau.broker.internal_topics import OFFSETS, TRANSACTION_STATE
from moldau.kernel.disk import Disk
from moldau.kernel.ids import TopicId
from moldau.replication.replica import Replica
from moldau.runtime.node import Node
from moldau.simulation.laws.committed import CommittedLog, ReadFile, RecordsLaw, stored
from moldau.simulation.laws.coordinated import PartitionOwners, TransactionStates
from moldau.simulation.laws.log import (
    check_committed_reads,
    check_log,
    check_producers,
    stored_bytes,
)
from moldau.simulation.laws.rebuilt import check_rebuilt
from moldau.simulation.laws.waiting import check_coordinators, check_fetches

if TYPE_CHECKING:
    from moldau.coordination.machine import Machine

RECORDS_LAWS: Final[dict[str, Callable[[], RecordsLaw]]] = {
    OFFSETS: PartitionOwners,
    TRANSACTION_STATE: TransactionStates,
}
"""By topic, what is checked about the records of each of its partitions."""


LOOK_SECONDS: Final = 0.25

PartitionKey = tuple[TopicId, int]
"""A partition, told apart from one of the same name that was deleted."""


class NodeLaws:
    """Follows one node from incarnation to incarnation."""

    def __init__(self, look: Callable[[Disk], ReadFile]) -> None:
        """Take what reads the files of a disk without leaving a trace."""
        self._look = look
        self._logs: dict[PartitionKey, CommittedLog] = {}
        self._seen: dict[PartitionKey, tuple[int, int]] = {}
        self._looked_at = 0.0
        self._loaded: dict[PartitionKey, Machine] = {}

    def check_step(self, node: Node) -> None:
        """Check what has changed since the last step; once in a while, what waits."""
        now = node.broker.environment.now().monotonic
        if abs(now - self._looked_at) >= LOOK_SECONDS:
            self._looked_at = now
            check_coordinators(node.broker)
            self._check_loaded(node)
        for replica in node.broker.replicas:
            log = replica.log
            if log is None:
                continue
            key = replica.topic_id, replica.partition.partition
            seen = log.high_watermark, log.log_start
            if self._seen.get(key) != seen:
                self._seen[key] = seen
                self._committed(replica).follow(log, self._read_file(node, replica))

    def check_whole(self, node: Node) -> None:
        """Check everything that a node has; nothing may be staged."""
        check_fetches(node.broker)
        for replica in node.broker.replicas:
            log = replica.log
            if log is not None:
                self._committed(replica).check_whole(log, self._read_file(node, replica))
                disk = node.logs.place_of(replica.partition).waiting
                check_log(log, disk)
                if not (log.log_start or log.config.is_compacted):  # all batches are there
                    check_producers(log, disk)
                    check_committed_reads(log, disk, stored_bytes(log, disk))

    def _check_loaded(self, node: Node) -> None:
        """Check the shards that have read their partitions since the last look."""
        for coordinator in node.broker.coordinators:
            for shard in coordinator:
                log = shard.replica.log
                if log is None or shard.state is not ShardState.ACTIVE:
                    continue
                key = shard.replica.topic_id, shard.replica.partition.partition
                if self._loaded.get(key) is not shard.machine and log.written_offset == log.log_end:
                    self._loaded[key] = shard.machine
                    check_rebuilt(shard.machine, stored(log, self._read_file(node, shard.replica)))

    def forget_committed(self) -> None:
        """Forget what was committed: with durability=page-cache a power loss may take it."""
        self._logs.clear()
        self._seen.clear()

    def _read_file(self, node: Node, replica: Replica) -> ReadFile:
        return self._look(node.logs.place_of(replica.partition).disk)

    def _committed(self, replica: Replica) -> CommittedLog:
        partition = replica.partition
        key = replica.topic_id, partition.partition
        committed = self._logs.get(key)
        if committed is None:
            law = RECORDS_LAWS.get(partition.topic)
            committed = CommittedLog(partition, None if law is None else law())
            self._logs[key] = committed
        return committed
