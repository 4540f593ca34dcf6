"""Which process runs an app in a folder, and how it is doing: a lock and a file beside it."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from moldau.pipelines.errors import PipelineError

LOCK: Final = "run.lock"
STATUS: Final = "status.json"
MOMENT_SECONDS: Final = 0.5

T = TypeVar("T")


class AlreadyRunsError(PipelineError):
    """Another process runs the app in this folder."""


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A process that runs an app: of this machine, or of another that shares the folder."""

    pid: int
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it is one of this machine's."""
        return self.host == socket.gethostname()

    def __str__(self) -> str:
        return f"process {self.pid}" if self.is_here else f"process {self.pid} on {self.host}"


class RunFolder:
    """Where the run of an app keeps what other processes may know of it.

    The lock is the kernel's: it goes with the process that holds it, however that ends. The
    process id in the locked file is valid only for as long as it is locked, and on the machine that
    is named behind it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def hold(self, app: str) -> Iterator[None]:
        """Be the one process that runs the app here."""
        self.path.mkdir(parents=True, exist_ok=True)
        with _opened(self.path / LOCK, os.O_RDWR | os.O_CREAT) as descriptor:
            # Somebody who only looks holds it for a moment.
            if not _retry(lambda: _try_lock(descriptor, fcntl.LOCK_EX)):
                raise AlreadyRunsError(
                    f"app {app} runs already, as {self.find_process()}: "
                    f"`moldau pipeline stop {app}` stops it"
                )
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
            yield
            os.ftruncate(descriptor, 0)

    def find_process(self) -> RunProcess | None:
        """Return the process that runs the app here."""
        try:
            with _opened(self.path / LOCK, os.O_RDONLY) as descriptor:
                if _try_lock(descriptor, fcntl.LOCK_SH):
                    return None
                # Between locking and telling there is a moment with no process id, or an old one.
                return _retry(lambda: _find_live(descriptor))
        except FileNotFoundError:
            return None

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace what is told of the run; readers see the old or the new, never a part."""
        new = self.path / f"{STATUS}.new"
        new.write_text(json.dumps({"at_ms": time.time_ns() // 1_000_000, **status}))
        new.replace(self.path / STATUS)

    def read_status(self) -> dict[str, Any] | None:
        """Return what was told last; None if nothing was."""
        try:
            status: dict[str, Any] = json.loads((self.path / STATUS).read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise PipelineError(f"{self.path / STATUS} is damaged: delete it") from None
        return status


def run_folder_of(local_folder: Path, into: str | None = None) -> RunFolder:
    """Return where a run is told of: a backfill into a topic may go on beside the live run.

    No topic has a name with an @, so that no query's checkpoint is in the way.
    """
    return RunFolder(local_folder / ("@run" if into is None else f"@run-{into}"))


def find_runs(folder: Path) -> dict[str, RunFolder]:
    """Return all apps that have run in a folder, by name."""
    found = (run_folder_of(each) for each in sorted(folder.glob("*/")))
    return {each.path.parent.name: each for each in found if (each.path / LOCK).exists()}


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _find_live(descriptor: int) -> RunProcess | None:
    pid, _, host = os.pread(descriptor, 512, 0).decode().strip().partition(" ")
    if not pid.isdigit():
        return None
    process = RunProcess(int(pid), host or socket.gethostname())
    if not process.is_here:
        return process
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # It is somebody else's, and it is there.
    return process


def _retry(attempt: Callable[[], T | None]) -> T | None:
    """Try for a moment, until there is something."""
    deadline = time.monotonic() + MOMENT_SECONDS
    while not (found := attempt()) and time.monotonic() < deadline:
        time.sleep(MOMENT_SECONDS / 10)
    return found
