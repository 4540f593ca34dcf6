"""Drivers that tests kill: each is a process with a group of its own, for all that it starts."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 600


class Driver:
    """A module that runs as a program; with `with`, nothing of it is left at the end.

    `program` goes before its command, `variables` are its own of the environment.
    """

    def __init__(
        self, module: str, *arguments: str, program: Sequence[str] = (), **variables: str
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(
            [*program, sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        self._errors.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for its end; return its exit code, a signal's negative."""
        return self._process.wait(SECONDS_MAX)

    def stop(self) -> int:
        """Have it end in good order; return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it with -9, and all that it has started."""
        if self.is_running:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def errors(self) -> str:
        """Return what it said on the way."""
        self._errors.seek(0)
        return self._errors.read()


def run_driver(module: str, *arguments: str) -> tuple[int, str]:
    """Run a driver to its end or its death; return its exit code and what it said."""
    with Driver(module, *arguments) as driver:
        return driver.wait(), driver.errors()
