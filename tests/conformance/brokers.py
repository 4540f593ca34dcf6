"""The broker that the client tests talk to: ours, or Apache Kafka 4.3.1 to settle an expectation.

MOLDAU_CONFORMANCE_BROKER=apache pytest tests/conformance/test_clients.py
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.apache_kafka import apache_kafka
from tests.conformance.jars import FRUGAL
from tests.nodes import RunningNode

IS_APACHE = os.environ.get("MOLDAU_CONFORMANCE_BROKER") == "apache"


@dataclass(frozen=True)
class RunningBroker:
    """Where a broker listens, and which process it is."""

    host: str
    port: int
    pid: int
    output: tuple[str, ...] = ()
    """What ours said until it was ready."""

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
    directory: Path,
    settings: Mapping[str, str],
    options: Sequence[str] = FRUGAL,
    *,
    advertised: str | None = None,
) -> Iterator[RunningBroker]:
    """Run Apache Kafka 4.3.1, with these options for its Java machine.

    Clients may be told to go elsewhere, as to a proxy.
    """
    with apache_kafka(directory, settings, options=options, advertised=advertised) as kafka:
        assert kafka.process is not None
        yield RunningBroker("127.0.0.1", kafka.port, kafka.process.pid)


@contextmanager
def run_moldau(
    directory: Path, settings: Mapping[str, str], *, advertised: str | None = None
) -> Iterator[RunningBroker]:
    """Run `moldau start` as a user does, and expect that it ends cleanly."""
    given = [f"--set={key}={value}" for key, value in settings.items()]
    if advertised is not None:
        given.append(f"--set=advertised.listeners=PLAINTEXT://{advertised}")
    node = RunningNode("--data", str(directory / "data"), *given)
    try:
        yield RunningBroker(*node.address, node.process.pid, tuple(node.output))
        node.stop()
    finally:
        if node.process.poll() is None:
            node.kill()
