"""A broker in the test's process, on a free port, in a thread of its own."""

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from moldau.metadata.settings.broker import find_broker_setting
from moldau.metadata.settings.load import load_broker_settings
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.testing.clock import Clock
from moldau.testing.faults import Faults
from moldau.testing.hosted_node import BrokerFailedError
from moldau.testing.port import HOST, ReservedPort
from moldau.testing.running import NOT_HERE, BrokerLoop

__all__ = ["Broker", "BrokerFailedError"]

SettingValues = Mapping[str, object]

DEFAULTS: Final = {
    # A test waits for nothing that a cluster of many would wait for.
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Whoever has not got an answer by then, because a fault has lost it, is cut off.
    "moldau.shutdown.max.ms": "200",
}
"""What is different from a broker that `moldau start` starts; settings win over it."""

OWN: Final = frozenset({"advertised.listeners", "listeners", "log.dir", "log.dirs"})
"""What no setting changes: the port is chosen, and `data` says where everything is kept."""


class Broker:
    """A broker for one test or many.

        with Broker() as broker:
            topic = broker.topic(partitions=3)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    It keeps everything in memory, or in the directory `data`. `settings` are Kafka's broker
    configs, by name. It serves in a thread of its own, so it goes on while the test waits in a
    client; processes that are forked from the test can use it, too.
    """

    def __init__(
        self, *, settings: SettingValues | None = None, data: str | Path | None = None
    ) -> None:
        self._settings = _own_settings(settings or {})
        self._data = None if data is None else Path(data)
        self._port: ReservedPort | None = None
        self._running = BrokerLoop()
        self.clock = Clock(self._running)
        """The broker's time, which a test can move."""
        self.faults = Faults(self._running)
        """What can go wrong on demand."""
        _check(self._static())

    # Starting and stopping.

    def start(self) -> Self:
        """Start it; `with` does."""
        if self._running.is_here:
            raise RuntimeError("the broker runs already")
        self._port = ReservedPort()
        try:
            self._running.start(self._data, self._static())
        except BaseException:
            self._port.release()
            self._port = None
            raise
        return self

    def stop(self) -> None:
        """Stop it, and leave nothing behind but `data`; `with` does.

        In a forked child this does nothing: the broker is its parent's.
        """
        if self._port is None or not self._running.is_here:
            return
        try:
            self._running.stop()
        finally:
            self._port.release()
            self._port = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def restart(self, *, keep_data: bool = True) -> None:
        """Stop it in good order and start it on the same port, with what it had or with nothing.

        Connections are closed. Its time goes on, and faults of requests stay.
        """
        restart = self._running.hosted.restart(self._static(), keep_data=keep_data)
        self._running.call(restart)

    def settings(
        self, settings: SettingValues | None = None, /, **named: object
    ) -> AbstractContextManager[object]:
        """Change broker configs, which restarts the broker with what it has.

        Names are Kafka's; as keywords with underscores: `broker.settings(num_partitions=3)`. They
        count from now on; used with `with`, those from before come back when the block ends.
        """
        keywords = {name.replace("_", "."): value for name, value in named.items()}
        before = self._settings
        self._change(before | _own_settings({**(settings or {}), **keywords}))
        undo = ExitStack()
        undo.callback(self._change, before)
        return undo

    def _change(self, settings: dict[str, str]) -> None:
        before, self._settings = self._settings, settings
        try:
            _check(self._static())
        except ValueError:
            self._settings = before
            raise
        self.restart()

    # Using.

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return HOST

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._port is None:
            raise RuntimeError(NOT_HERE)
        return self._port.number

    @property
    def bootstrap_servers(self) -> str:
        """Where it is, as clients want to be told."""
        return f"{self.host}:{self.port}"

    def topic(self, *, partitions: int = 1, **configs: object) -> str:
        """Create a topic with a random name, and return that.

        Its configs are keywords with underscores: `broker.topic(cleanup_policy="compact")`.
        """
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        return self.create_topic(partitions=partitions, configs=dotted)

    def create_topic(
        self, name: str | None = None, *, partitions: int = 1, configs: SettingValues | None = None
    ) -> str:
        """Create a topic and return its name, a random one by default.

        `ValueError` says, with Kafka's name for it, why a topic cannot be created.
        """
        chosen = f"test-{secrets.token_hex(6)}" if name is None else name
        topic = CreatableTopic(
            name=chosen,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key, value=text)
                for key, text in _texts(configs or {}).items()
            ],
        )
        self._running.call(self._running.hosted.create(topic))
        return chosen

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, by name."""
        return self._running.call(self._running.hosted.topics())

    def _static(self) -> dict[str, str]:
        address = f"PLAINTEXT://{HOST}:{0 if self._port is None else self._port.number}"
        kept = {"durability": "memory"} if self._data is None else {"log.dirs": str(self._data)}
        where = {"listeners": address, "advertised.listeners": address}
        return DEFAULTS | kept | where | self._settings


def _own_settings(settings: SettingValues) -> dict[str, str]:
    """Return settings that a test may choose; `ValueError` for others."""
    if refused := sorted(OWN & set(settings)):
        raise ValueError(f"{', '.join(refused)}: chosen by the fixture; `data` is the directory")
    return _texts(settings)


def _texts(settings: SettingValues) -> dict[str, str]:
    """Return values as Kafka writes them."""
    return {name: _text(value) for name, value in settings.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(settings: Mapping[str, str]) -> None:
    """Raise `ValueError` for settings that a broker does not have or cannot go by."""
    loaded = load_broker_settings(assignments=[f"{key}={text}" for key, text in settings.items()])
    lines = [line.removeprefix("--set: ") for line in (*loaded.errors, *loaded.warnings)]
    if loaded.errors or any(find_broker_setting(name) is None for name in settings):
        raise ValueError("; ".join(lines))
