"""The ledger that all clients of a run note their operations in, with the laws over it."""

from collections import Counter
from typing import Final

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.delivery import Deliveries
from moldau.simulation.laws.history import History
from moldau.simulation.laws.registers import Registers
from moldau.simulation.world import World

NO_OFFSET: Final = -1

GroupPartition = tuple[str, TopicPartition]
"""A group and a partition, which the group has a committed offset for."""


class WorkloadLedger:
    """Everything that the clients of a run know of its records, groups and topics."""

    def __init__(self, world: World) -> None:
        self.history = History()
        self.offsets: Registers[GroupPartition, int] = Registers("the offset", NO_OFFSET)
        self.configs: Registers[tuple[str, str], str] = Registers("the config", "")
        """By topic and name; a topic that is not there has none."""
        self.deliveries = Deliveries()
        self.acknowledged: Counter[str] = Counter()
        """How many operations were acknowledged, by kind."""
        self._world = world

    @property
    def now(self) -> float:
        """The world's seconds, which are the same for all clients."""
        return self._world.seconds
