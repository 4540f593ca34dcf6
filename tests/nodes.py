"""A node in a process of its own, started as a user does."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

READY = "ready "
STOP_SECONDS_MAX = 30
MOLDAU = (sys.executable, "-m", "moldau.cli")


class RunningNode:
    """A process that has said `ready`; `program` goes before its command."""

    def __init__(self, *arguments: str, program: Sequence[str] = ()) -> None:
        # A pipe that nobody reads would fill up, and stop a node that has much to log.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when it has ended
        self.process = subprocess.Popen(
            [*program, *MOLDAU, "start", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.output: list[str] = []
        """What it said until it was ready."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line.rstrip("\n"))
            if line.startswith(READY):
                break
        else:
            self.process.communicate()
            raise AssertionError(f"the node did not start: {self._take_log()}")
        host, _, port = self.output[-1].removeprefix(READY).rpartition(":")
        self.address = host, int(port)

    @property
    def bootstrap_servers(self) -> str:
        """Where it is, as clients want to be told."""
        host, port = self.address
        return f"{host}:{port}"

    def stop(self) -> str:
        """Have it end in good order; return what it logged."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=STOP_SECONDS_MAX)
        log = self._take_log()
        assert self.process.returncode == 0, log
        return log

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.communicate()
        self._log.close()

    def _take_log(self) -> str:
        with self._log:
            self._log.seek(0)
            return self._log.read()
