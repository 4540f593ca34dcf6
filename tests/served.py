"""A command that serves until a test has seen enough, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.commands import environment

DEADLINE_SECONDS = 300
MOLDAU = (sys.executable, "-m", "moldau.cli")
SQL_SERVER = ("sql", "server", "--listen", "127.0.0.1:0", "-b")
"""And the brokers' address."""


@dataclass(frozen=True, slots=True)
class Served:
    """A process that has said that it is ready."""

    address: str
    pid: int


@contextmanager
def served(
    *words: str,
    folder: Path,
    program: Sequence[str] = MOLDAU,
    ready: str = "ready ",
    is_killed: bool = False,
) -> Iterator[Served]:
    """Run a command; `ready` begins the line that says where it is found.

    It says its lines to `output` and `errors` in the folder, behind those of others before it. When
    it is told to end, it must do so in good order; one that `is_killed` is not told.
    """
    # Files, because a pipe that nobody reads would fill up and stop it.
    told = {name: folder / name for name in ("output", "errors")}
    with told["output"].open("ab") as output, told["errors"].open("ab") as errors:
        begun = {told["output"]: output.tell(), told["errors"]: errors.tell()}
        process = subprocess.Popen(
            [*program, *words],
            stdout=output,
            stderr=errors,
            cwd=folder,
            env=environment(),
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (address := _find(ready, begun)) is None:
            assert process.poll() is None, told["errors"].read_text()
            assert time.monotonic() < deadline, f"no {ready}: {told['errors'].read_text()}"
            time.sleep(0.05)
        yield Served(address, process.pid)
        assert process.poll() is None, f"it ended by itself: {told['errors'].read_text()}"
        if not is_killed:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 0, told["errors"].read_text()
    finally:
        # With everything that it has started, such as Spark's Java.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _find(ready: str, begun: dict[Path, int]) -> str | None:
    for file, place in begun.items():
        for line in file.read_bytes()[place:].decode().splitlines(keepends=True):
            if line.startswith(ready) and line.endswith("\n"):
                return line.split()[1]
    return None
