"""A broker's settings: Kafka's, with the few defaults that differ here, and our own."""

import re
from typing import Final, cast

from moldau.metadata.settings.allowed import at_least, items, like, one_of
from moldau.metadata.settings.declare import Int, Long, Text, Texts
from moldau.metadata.settings.kafka_broker import KafkaBroker
from moldau.metadata.settings.kafka_coordinators import KafkaCoordinators
from moldau.metadata.settings.kafka_resources import BrokerQuotaSettings
from moldau.metadata.settings.kafka_security import KafkaSecurity
from moldau.metadata.settings.kinds import SettingValue
from moldau.metadata.settings.setting import HIGH, LOW, PER_BROKER, Setting, Settings
from moldau.metadata.settings.since_4_4 import BrokerSince44

MEBI: Final = 1 << 20

_FOR_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.+)")

# These may have a SASL mechanism's name in front as well.
_FOR_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


class OwnSettings(Settings):
    """What Kafka has no setting for; `moldau.` in front keeps the names apart from Kafka's.

    `durability` and `metadata.version` go without it, because they are typed by hand most.
    """

    durability = Text("fsync", one_of("fsync", "page-cache", "memory"), HIGH)
    metadata_version = Text("4.3", like(r"[0-9]+\.[0-9]+", "a release such as 4.3"), HIGH)
    moldau_batch_decompressed_max_bytes = Int(100 * MEBI, at_least(MEBI))
    moldau_connection_pending_max_bytes = Long(32 * MEBI, at_least(MEBI))
    moldau_connection_pending_max_requests = Int(100, at_least(1))
    moldau_connection_stall_max_ms = Int(60_000, at_least(1))
    moldau_connection_unsent_max_bytes = Long(64 * MEBI, at_least(MEBI))
    moldau_disk_free_warn_bytes = Long(10 * 1024 * MEBI, at_least(0))
    moldau_disk_reserve_bytes = Long(64 * MEBI, at_least(0))
    moldau_fetch_sendfile_min_bytes = Int(128 * 1024, at_least(-1), LOW)
    moldau_metrics_listener = Text(
        "", like(r"|(\[[0-9a-fA-F:]+\]|[^\s:]+):[0-9]{1,5}", "host:port, or empty")
    )
    moldau_open_files_max = Int(10_000, at_least(16), LOW)
    moldau_shutdown_max_ms = Int(30_000, at_least(0))


class BrokerSettings(KafkaBroker, KafkaSecurity, KafkaCoordinators, BrokerSince44, OwnSettings):
    """All settings of a broker. The defaults below differ from Kafka's, or fill its gaps."""

    # One machine needs no file: one node that is broker and controller, reachable from itself.
    controller_listener_names = Texts(("CONTROLLER",), items(), HIGH)
    listeners = Texts(("PLAINTEXT://localhost:9092",), items(), HIGH, PER_BROKER)
    node_id = Int(1, at_least(0), HIGH)
    process_roles = Texts(("broker", "controller"), items("broker", "controller"), HIGH)
    # Where a person finds it again, and no cleaner of /tmp does.
    log_dir = Texts(("data",), items(), HIGH)

    @property
    def log_directories(self) -> tuple[str, ...]:
        """Where partitions are: `log.dirs`, or `log.dir` without it."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    @property
    def metadata_log_directory(self) -> str:
        """Where the cluster's metadata is."""
        return self.metadata_log_dir or self.log_directories[0]

    @property
    def receive_buffer_bytes(self) -> int:
        """What a socket's receive buffer is set to; -1: the system fits it to the connection."""
        return self._buffer_bytes(BrokerSettings.socket_receive_buffer_bytes)

    @property
    def send_buffer_bytes(self) -> int:
        """What a socket's send buffer is set to; -1: the system fits it to the connection."""
        return self._buffer_bytes(BrokerSettings.socket_send_buffer_bytes)

    def _buffer_bytes(self, setting: Setting[int]) -> int:
        # Kafka's default is of a time when systems had no better guess: it halves the throughput
        # of large batches. Who wants it says so.
        return cast("int", self.values[setting.name]) if setting.name in self.given else -1


def base_name(name: str) -> str:
    """Return the setting that `name` gives a value to, on all listeners or on one.

    `listener.name.internal.ssl.key.password` is `ssl.key.password` on the listener INTERNAL.
    """
    match = _FOR_LISTENER.fullmatch(name)
    if match is None:
        return name
    return next((base for base in _FOR_MECHANISM if match[1].endswith(base)), match[1])


def find_broker_setting(name: str) -> Setting[SettingValue] | None:
    """Return the declaration of a broker's setting, also for one listener only."""
    base = base_name(name)
    return BrokerSettings.declared.get(base) or BrokerQuotaSettings.declared.get(base)
