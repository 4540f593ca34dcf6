"""The simplest faults: the node is killed, loses power or is stopped, and comes back."""

from collections.abc import Sequence
from typing import Final

from moldau.simulation.run import SimulatedRun

POWER_LOSS: Final = "power loss"
KINDS: Final = ("kill", POWER_LOSS, "stop")


class NodeRestarts:
    """Ends the node again and again, in each of some ways, and starts it soon after."""

    def __init__(self, *, every_seconds: float = 10.0, kinds: Sequence[str] = KINDS) -> None:
        self._every_seconds = every_seconds
        self._kinds = kinds

    def begin(self, run: SimulatedRun) -> None:
        """Have the first one happen after a while."""
        self._random = run.world.random("restarts")
        self._kinds = [each for each in self._kinds if each != POWER_LOSS or run.may_lose_power]
        if self._kinds:
            self._plan(run)

    def end(self, run: SimulatedRun) -> None:
        """Do nothing: the node is what the run starts again."""

    def _plan(self, run: SimulatedRun) -> None:
        wait = self._random.expovariate(1 / self._every_seconds)
        run.world.after(wait, lambda: self._happen(run))

    def _happen(self, run: SimulatedRun) -> None:
        if run.is_healing:
            return
        node = run.node
        if node is not None and node.is_alive:
            kind = self._random.choice(self._kinds)
            run.note_fault(kind, node.name)
            match kind:
                case "kill":
                    node.kill()
                case "stop":
                    node.stop()
                case _:
                    run.machine.lose_power()
            run.node_is_down()
            run.world.after(self._random.random() * 3, lambda: self._restart(run))
        self._plan(run)

    def _restart(self, run: SimulatedRun) -> None:
        if run.node is not None and run.node.is_alive:
            run.world.after(0.1, lambda: self._restart(run))  # it is still stopping
        else:
            run.start_node()
