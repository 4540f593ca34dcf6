"""The broker that the client tests talk to: ours, or Apache Kafka 4.3.1 to settle an expectation.

MOLDAU_CONFORMANCE_BROKER=apache pytest tests/conformance/test_clients.py
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.apache_kafka import FRUGAL, apache_kafka

IS_APACHE = os.environ.get("MOLDAU_CONFORMANCE_BROKER") == "apache"
READY = re.compile(r"^ready (\S+):(\d+)$", re.MULTILINE)
READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30


@dataclass(frozen=True)
class RunningBroker:
    """Where a broker listens, and which process it is."""

    host: str
    port: int
    pid: int

    @property
    def bootstrap_servers(self) -> str:
        """What clients are told to connect to."""
        return f"{self.host}:{self.port}"


@contextmanager
def run_broker(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[RunningBroker]:
    """Run the broker that the environment names; it is stopped at the end."""
    with (run_apache if IS_APACHE else run_moldau)(directory, settings or {}) as broker:
        yield broker


@contextmanager
def run_apache(
    directory: Path, settings: Mapping[str, str], options: Sequence[str] = FRUGAL
) -> Iterator[RunningBroker]:
    """Run Apache Kafka 4.3.1, with these options for its Java machine."""
    with apache_kafka(directory, settings, options=options) as kafka:
        assert kafka.process is not None
        yield RunningBroker("127.0.0.1", kafka.port, kafka.process.pid)


@contextmanager
def run_moldau(directory: Path, settings: Mapping[str, str]) -> Iterator[RunningBroker]:
    """Run `moldau start` as a user does, and expect that it ends cleanly."""
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / "moldau.out"
    moldau = str(Path(sys.executable).with_name("moldau"))
    command = [moldau, "start", "--port", "0", "--data", str(directory / "data")]
    command += [f"--set={key}={settings[key]}" for key in settings]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        ready = _wait_until_ready(process, output)
        yield RunningBroker(ready[1], int(ready[2]), process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS_MAX) == 0, output.read_text()[-5000:]
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], output: Path) -> re.Match[str]:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not (ready := READY.search(output.read_text())):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"moldau did not start:\n{output.read_text()[-5000:]}")
        time.sleep(0.01)
    return ready
