"""A broker without anything behind it, for tests of connections and handlers."""

from collections.abc import Callable
from unittest.mock import Mock

from moldau.broker.broker import Broker
from moldau.broker.ports import DirectoriesPort, LoggersPort, LogsPort, ShardWatch
from moldau.coordination.command import Answer, Command
from moldau.kernel.clock import Instant
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.errors import ErrorCode
from moldau.replication.replica import LogWriter
from moldau.replication.replicas import Replicas


class NoTimer:
    """Never happens."""

    def cancel(self) -> None:
        """Do nothing."""


class StillEnvironment:
    """Time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.instant = Instant(1000.0, 1_700_000_000_000)

    def now(self) -> Instant:
        """Return the time."""
        return self.instant

    def at(self, _monotonic: float, _do: Callable[[], None]) -> NoTimer:
        """Never do it."""
        return NoTimer()

    def entropy(self, size: int) -> bytes:
        """Return bytes that are as good as any."""
        return bytes(range(size))


class NoController:
    """A controller that does not answer."""

    leader_id: int | None = None
    kraft_version = 0

    def submit(self, _command: Command[Answer], then: Callable[[Answer | ErrorCode], None]) -> None:
        """Say that nobody decides."""
        then(ErrorCode.NOT_CONTROLLER)


def bare_broker(**texts: str) -> Broker:
    """Return a broker with settings, `max_connections="1"` for max.connections, and no topics."""
    layers = BrokerLayers(static={name.replace("_", "."): text for name, text in texts.items()})
    return Broker(
        node_id=1,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        layers=layers,
        settings=broker_settings(layers),
        image=ClusterImage(),
        controller=NoController(),
        environment=StillEnvironment(),
        replicas=Replicas(1, lambda _topic, _index: False, Mock(spec=LogWriter)),
        logs=Mock(spec=LogsPort),
        directories=Mock(spec=DirectoriesPort),
        loggers=Mock(spec=LoggersPort),
        shard_watch=Mock(spec=ShardWatch),
    )
