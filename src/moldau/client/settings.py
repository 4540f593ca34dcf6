"""A client's settings: Kafka's names, with dots in files and underscores in Python."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from moldau.client.errors import ConfigError

DEFAULT_PORT: Final = 9092

JAVA_ONLY: Final = frozenset(
    {
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "metric.reporters",
        "partitioner.class",
        "value.deserializer",
        "value.serializer",
    }
)
"""Names of Java classes: nothing here can load them."""

SECURITY: Final = ("security.", "sasl.", "ssl.")
"""How the names begin of settings for what there is not yet: TLS and SASL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What every client needs to reach a cluster."""

    bootstrap_servers: str = f"localhost:{DEFAULT_PORT}"
    """Some of the brokers, `HOST:PORT` with commas between; they name the others."""
    client_id: str = "moldau"
    """How the client is called in the broker's logs and metrics."""
    request_timeout_ms: int = 30_000
    """How long one request may take before its connection is given up."""
    default_api_timeout_ms: int = 60_000
    """How long a call may take, with all its attempts."""
    retry_backoff_ms: int = 100
    """How long to wait before the second attempt; twice as long before each further one."""
    retry_backoff_max_ms: int = 1_000
    """The longest wait between attempts."""
    metadata_max_age_ms: int = 300_000
    """How long what is known of the cluster is believed without asking again."""
    socket_connection_setup_timeout_ms: int = 10_000
    """How long to wait for a connection to be made."""
    connections_max_idle_ms: int = 540_000
    """How long an unused connection is kept."""


Settings = TypeVar("Settings", bound=ClientSettings)


def load(
    kind: type[Settings],
    servers: str | None,
    config: Mapping[str, object] | None,
    keywords: Mapping[str, object],
) -> Settings:
    """Make settings of an address, a mapping with Kafka's names, and keywords, which win."""
    texts = {_field_name(name): value for name, value in (config or {}).items()}
    texts |= keywords
    if servers is not None:
        texts["bootstrap_servers"] = servers
    known = {field.name: field for field in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in texts.items():
        if name == "security_protocol" and value == "PLAINTEXT":
            continue  # That is how we speak; files of other clients often say it.
        if name not in known:
            raise ConfigError(_unknown(name, list(known)))
        least = known[name].metadata.get("min", 0)
        values[name] = _convert(name, value, known[name].default, least)
    return kind(**values)


def kafka_name(name: str) -> str:
    """Return a field's name as Kafka writes it."""
    return name.replace("_", ".")


def _field_name(name: str) -> str:
    return name.replace(".", "_")


def _unknown(name: str, known: list[str]) -> str:
    dotted = kafka_name(name)
    if dotted in JAVA_ONLY:
        return f"{dotted} names a Java class, which only a Java client can load: leave it out"
    if dotted.startswith(SECURITY):
        return f"{dotted}: TLS and SASL are not there yet, only security.protocol=PLAINTEXT"
    near = get_close_matches(name, known, 1)
    way_out = f"did you mean {kafka_name(near[0])}?" if near else "see the client's documentation"
    return f"there is no setting {dotted}: {way_out}"


def _convert(name: str, value: object, default: object, least: int) -> object:
    """Take a value as it is, or read a text as a value like the default."""
    if isinstance(value, str) and not isinstance(default, str):
        try:
            if isinstance(default, bool):
                return {"true": True, "false": False}[value.strip().lower()]
            if isinstance(default, int):
                return int(value)
        except (KeyError, ValueError):
            wanted = "true or false" if isinstance(default, bool) else "a number"
            raise ConfigError(f"{kafka_name(name)}={value}: {wanted} is allowed") from None
    if isinstance(default, int) and not isinstance(default, bool):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"{kafka_name(name)}={value!r}: a number is allowed")
        if value < least:
            raise ConfigError(f"{kafka_name(name)}={value}: {least} or more is allowed")
    return value


def addresses_of(servers: str) -> list[tuple[str, int]]:
    """Split `bootstrap.servers`; `ConfigError` says which part is no address."""
    addresses = []
    for text in servers.split(","):
        part = text.strip().rpartition("://")[2]
        if not part:
            continue
        host, colon, port = part.rpartition(":")
        if not colon or (part.startswith("[") and part.endswith("]")):
            host, port = part, str(DEFAULT_PORT)
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"{part}: HOST:PORT is wanted, such as localhost:{DEFAULT_PORT}")
        addresses.append((host.strip("[]") or "localhost", int(port)))
    if not addresses:
        raise ConfigError("bootstrap.servers names no broker: localhost:9092 is a usual one")
    return addresses
