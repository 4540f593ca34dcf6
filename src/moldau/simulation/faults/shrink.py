"""Shrinking: from a run that breaks a law to a short script that breaks the same one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from moldau.simulation.faults.injector import scripted
from moldau.simulation.faults.script import FaultScript, ScriptedFault
from moldau.simulation.run import RunOutcome

SECONDS_MIN: Final = 1.0


def run_script(script: FaultScript) -> tuple[RunOutcome, FaultScript]:
    """Run a script; return how that went, and the script without what has not happened."""
    run, injector = scripted(script)
    outcome = run.execute()
    return outcome, replace(script, faults=tuple(injector.happened))


class Shrinker:
    """Makes a script smaller while the same law is broken: fewer faults, less time, fewer clients.

    shrinker = Shrinker(script, law="lost write", is_over=lambda: clock() > deadline)
    print(shrinker.shrink())
    """

    def __init__(
        self,
        script: FaultScript,
        law: str,
        is_over: Callable[[], bool],
        run: Callable[[FaultScript], tuple[RunOutcome, FaultScript]] = run_script,
    ) -> None:
        self.script = script
        """The smallest script so far that breaks the law."""
        self.runs = 0
        self._law = law
        self._is_over = is_over
        self._run = run

    def shrink(self) -> FaultScript:
        """Return the smallest script that is found in time."""
        size = -1.0
        while size != self._size() and not self._is_over():
            size = self._size()
            self._shorten()
            self._drop_faults()
            self._drop_clients()
        return self.script

    def _size(self) -> float:
        return len(self.script.faults) + len(self.script.clients) / 100 + self.script.seconds

    def _try(self, script: FaultScript) -> bool:
        """Whether a script breaks the law; then it is the one to go on with."""
        if self._is_over():
            return False
        self.runs += 1
        outcome, happened = self._run(script)
        if outcome.law != self._law:
            return False
        self.script = happened
        return True

    def _shorten(self) -> None:
        while self.script.seconds > SECONDS_MIN and self._try(
            replace(self.script, seconds=max(SECONDS_MIN, round(self.script.seconds / 2, 1)))
        ):
            pass

    def _drop_faults(self) -> None:
        """Leave out halves, quarters and so on, down to single faults (delta debugging)."""
        size = (len(self.script.faults) + 1) // 2
        while size:
            start = 0
            while start < len(self.script.faults):
                faults = self.script.faults
                left: tuple[ScriptedFault, ...] = faults[:start] + faults[start + size :]
                if not self._try(replace(self.script, faults=left)):
                    start += size
            size = 0 if size == 1 else (size + 1) // 2

    def _drop_clients(self) -> None:
        for client in self.script.clients:
            left = tuple(each for each in self.script.clients if each != client)
            if left:
                self._try(replace(self.script, clients=left))
