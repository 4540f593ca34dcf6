"""A world: machines under one virtual time, and everything in it from one seed."""

import gc
import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from types import TracebackType
from typing import Final, Self

from moldau.simulation.disk import PowerLostError
from moldau.simulation.machine import SimulatedMachine
from moldau.simulation.network import Network
from moldau.simulation.process_disk import ProcessGoneError
from moldau.simulation.process_logs import ProcessLogs
from moldau.simulation.scheduler import SECOND, Chance, Scheduler
from moldau.simulation.trace import Trace

STEPS_PER_COLLECTION: Final = 50_000


class ViolationError(AssertionError):
    """Something happened in a world that must never happen."""


class World:
    """Machines, a network and a time of their own.

        with World(seed=7) as world:
            broker = world.machine("broker-1").start_node({"log.dirs": "/data", ...})
            world.run_until(lambda: broker.is_serving, seconds=30)
            job = world.machine("client-1").start(program)
            world.run(seconds=60)

    Two runs of one seed that are asked the same have the same trace. `run` raises
    `ViolationError` when anything in the world has called `violate`: a law that is broken, an
    exception that no code handled. At the end of the block all processes are killed.
    """

    def __init__(self, seed: int, *, keeps_text: bool = False) -> None:
        self.seed = seed
        self._chance = Chance(seed)
        self.scheduler = Scheduler(self._chance)
        self.trace = Trace(self.scheduler, keeps_text=keeps_text)
        """What has happened; as text only with `keeps_text`."""
        self.network = Network(self.scheduler, self._chance, self.trace)
        """Links between hosts, to be cut, slowed down and reset."""
        self.machines: dict[str, SimulatedMachine] = {}
        """By their names."""
        self.violations: list[str] = []
        self.after_step: list[Callable[[], None]] = []
        """Called after every step: laws, which call `violate`."""
        self.logs = ProcessLogs(self.trace)
        """What processes log; their errors apart."""
        self._leave = ExitStack()

    def __enter__(self) -> Self:
        """Begin: from now on garbage is collected at the same steps in every run."""
        # Generators, and futures with errors that no code has seen, end with the garbage.
        if gc.isenabled():
            self._leave.callback(gc.enable)
            gc.disable()
        gc.freeze()  # what was there before is not looked at again and again
        self._leave.callback(gc.unfreeze)
        self._leave.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = self._cannot_raise
        logger = logging.getLogger("moldau")
        logger.addHandler(self.logs)
        self._leave.callback(logger.removeHandler, self.logs)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Kill all processes."""
        for machine in self.machines.values():
            machine.kill()
        self._leave.close()

    def _cannot_raise(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Take an error in a destructor for a violation, unless its process is no more."""
        if not isinstance(unraisable.exc_value, PowerLostError | ProcessGoneError):
            what = f"{unraisable.err_msg or 'ignored in'} {unraisable.object!r}"
            self.violate(f"{what}: {unraisable.exc_value!r}")

    @property
    def seconds(self) -> float:
        """How old the world is."""
        return self.scheduler.now / SECOND

    def random(self, name: str) -> Random:
        """Return a stream of chance by its name; none disturbs another."""
        return self._chance.stream(name)

    def machine(self, name: str) -> SimulatedMachine:
        """Return a machine, which is added if there is none of that name."""
        found = self.machines.get(name)
        if found is None:
            found = self.machines[name] = SimulatedMachine(self, name)
        return found

    def at(self, seconds: float, do: Callable[[], object]) -> None:
        """Have something done when the world is so old: a fault, a look."""
        self.scheduler.at(int(seconds * SECOND), do)

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        """Have something done after so many seconds."""
        self.scheduler.after(int(seconds * SECOND), do)

    def violate(self, text: str) -> None:
        """Tell that a law is broken; the run ends after this step."""
        self.trace.note("world", "violation", text)
        self.violations.append(text)

    def run(self, seconds: float) -> None:
        """Let so much time pass; `ViolationError`."""
        self.run_until(lambda: False, seconds=seconds)

    def run_until(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        """Let time pass until a condition holds, so many seconds at most; whether it does.

        `ViolationError` if something happens that must never happen.
        """
        until = self.scheduler.now + int(seconds * SECOND)
        step, laws, violations = self.scheduler.step, self.after_step, self.violations
        while not condition():
            if not step(until):
                return condition()
            for check in laws:
                check()
            if violations:
                raise ViolationError(
                    f"seed {self.seed} at {self.seconds:.6f} s: {'; '.join(violations)}"
                )
            if self.scheduler.steps % STEPS_PER_COLLECTION == 0:
                gc.collect()
        return True
