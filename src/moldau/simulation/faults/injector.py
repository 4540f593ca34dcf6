"""The injector: has faults happen at their events, heals what lasts, starts the node again."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import Final, Protocol

from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults.disks import DISK_FAULTS
from moldau.simulation.faults.kind import FaultKind
from moldau.simulation.faults.links import CLOCK_FAULTS, NETWORK_FAULTS
from moldau.simulation.faults.processes import PROCESS_FAULTS
from moldau.simulation.faults.script import COUNTERS, FaultScript, ScriptedFault, ScriptError
from moldau.simulation.laws.history import OperationEnd
from moldau.simulation.run import SimulatedRun

FAULT_KINDS: Final = {
    kind.name: kind for kind in (*PROCESS_FAULTS, *DISK_FAULTS, *NETWORK_FAULTS, *CLOCK_FAULTS)
}
"""All kinds by their names."""
WATCH_SECONDS: Final = 0.25
UNWATCHED_SECONDS_MAX: Final = 1.0
"""How long a node that has ended by itself stays away."""
LOOKED_AT_MAX: Final = 200


class FaultSource(Protocol):
    """Says which faults happen when."""

    def begin(self, run: SimulatedRun, counts: Counter[str]) -> Iterable[ScriptedFault]:
        """Return the faults that are known at first."""

    def follow(
        self, run: SimulatedRun, fault: ScriptedFault, counts: Counter[str]
    ) -> ScriptedFault | None:
        """Return the fault that follows one whose moment has come, if there is any."""


class ScriptPlan:
    """Has the faults of a script happen, and no others."""

    def __init__(self, faults: Iterable[ScriptedFault]) -> None:
        """Take faults; `ScriptError` if there is no such kind."""
        self._faults = tuple(faults)
        for fault in self._faults:
            kind = FAULT_KINDS.get(fault.kind)
            if kind is None:
                raise ScriptError(
                    f"`{fault}`: no fault {fault.kind}; there are {', '.join(FAULT_KINDS)}"
                )
            if fault.counter not in kind.counters:
                raise ScriptError(
                    f"`{fault}`: it may happen at these events: {', '.join(kind.counters)}"
                )

    def begin(self, _run: SimulatedRun, _counts: Counter[str]) -> Iterable[ScriptedFault]:
        """Return all faults."""
        return self._faults

    def follow(self, _run: SimulatedRun, _fault: ScriptedFault, _counts: Counter[str]) -> None:
        """Return None."""


class Injector:
    """The faults of one run: counts events, and has faults happen in the middle of them."""

    def __init__(self, plan: FaultSource) -> None:
        self.happened: list[ScriptedFault] = []
        """All faults that have happened: with them as its script, a run is the same."""
        self._plan = plan
        self._counts: Counter[str] = Counter()
        self._due: dict[str, list[tuple[int, int, ScriptedFault]]] = {c: [] for c in COUNTERS}
        self._number = 0
        self._turns: tuple[object, int] = (None, 0)
        self._lasting: dict[int, Callable[[], object]] = {}
        self._start_at = 0.0
        self._is_forgiven = False
        self._was_alive = True
        self.run: SimulatedRun
        """The run that they happen in."""

    # What a run asks.

    def begin(self, run: SimulatedRun) -> None:
        """Have faults happen from now on."""
        self.run = run
        run.world.after_step.append(self._step)
        run.machine.before_disk = self._disk
        for fault in self._plan.begin(run, self._counts):
            self._add(fault)
        self._watch()

    def end(self, run: SimulatedRun) -> None:
        """Heal everything; the node is what the run starts again."""
        run.world.after_step.remove(self._step)
        run.machine.before_disk = None
        while self._lasting:
            self._heal(next(iter(self._lasting)))
        run.machine.stall(0)
        for disk in run.machine.disks.values():
            disk.revive()
        self._counts["end"] += 1
        self._look("end")

    # What faults ask.

    def lasts(self, seconds: float, undo: Callable[[], object]) -> None:
        """Have a fault end after so many seconds, or when everything is healed."""
        self._number += 1
        number = self._number
        self._lasting[number] = undo
        self.run.world.after(seconds, partial(self._heal, number))

    def node_ends(self, absence_seconds: float) -> None:
        """Have the node started again so long after it has ended."""
        self.run.node_is_down()
        self._start_at = max(self._start_at, self.run.world.seconds + absence_seconds)
        self._was_alive = False

    def forgive(self) -> None:
        """Let the node end by itself from now on, until it is started anew."""
        self._is_forgiven = True

    def _heal(self, number: int) -> None:
        undo = self._lasting.pop(number, None)
        if undo is not None:  # it was not healed before its time
            undo()

    # Events.

    def _step(self) -> None:
        process = self.run.node
        if process is None:
            return
        known, turns = self._turns
        if known is not process:
            known, turns = process, 0
        if process.loop.turns == turns:
            return
        self._counts["step"] += process.loop.turns - turns
        self._turns = process, process.loop.turns
        self._counts["operation"] = self.run.ledger.acknowledged.total()
        self._look("operation")
        self._look("step")

    def _disk(self, kind: str, disk: SimulatedDisk) -> None:
        self.run.disk_in_use = disk
        self._counts["disk"] += 1
        if kind in ("append", "sync"):
            self._counts[kind] += 1
            self._look(kind)
        self._look("disk")
        self.run.disk_in_use = None

    def _look(self, counter: str) -> None:
        due = self._due[counter]
        while due and due[0][0] <= self._counts[counter]:
            fault = heappop(due)[2]
            following = self._plan.follow(self.run, fault, self._counts)
            if following is not None:
                self._add(following)
            self._happen(fault, FAULT_KINDS[fault.kind])

    def _add(self, fault: ScriptedFault) -> None:
        self._number += 1
        heappush(self._due[fault.counter], (fault.number, self._number, fault))

    def _happen(self, fault: ScriptedFault, kind: FaultKind) -> None:
        run = self.run
        node = run.node
        if fault.counter != "end" and (node is None or not node.is_alive or node.is_paused):
            return
        if kind.loses_power and not run.may_lose_power:
            return
        self.happened.append(fault)
        run.note_fault(fault.kind, str(fault), is_in_flight=_is_in_flight(run))
        kind.happen(run, fault, self)

    # The node.

    def _watch(self) -> None:
        run = self.run
        if run.is_healing:
            return
        run.world.after(WATCH_SECONDS, self._watch)
        node = run.node
        if node is None or node.is_alive:
            return
        if self._was_alive:
            self._was_alive = False
            run.node_is_down()
            self._start_at = run.world.seconds + UNWATCHED_SECONDS_MAX
        why = node.refusal or node.failure or node.error
        if why and not self._is_forgiven:
            run.world.violate(f"unforced end: the node has ended by itself: {why!r}")
        if run.world.seconds >= self._start_at:
            self._was_alive = True
            if not any(disk.capacity_bytes is not None for disk in run.machine.disks.values()):
                self._is_forgiven = False
            run.start_node()


def _is_in_flight(run: SimulatedRun) -> bool:
    """Whether a client waits for the answer to a send or a commit."""
    history = run.ledger.history
    pending = OperationEnd.PENDING
    return any(
        each.outcome is pending for each in islice(reversed(history.sends.values()), LOOKED_AT_MAX)
    ) or any(each.outcome is pending for each in history.transactions[-LOOKED_AT_MAX:])


def scripted(script: FaultScript, **options: bool) -> tuple[SimulatedRun, Injector]:
    """Return the run of a script, and its faults."""
    injector = Injector(ScriptPlan(script.faults))
    run = SimulatedRun(
        script.seed,
        seconds=script.seconds,
        faults=injector,
        clients=script.clients,
        **options,
    )
    return run, injector
