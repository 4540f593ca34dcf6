"""The producer's settings, with Kafka's defaults and its rules about which go together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from moldau.client.errors import ConfigError
from moldau.client.settings import ClientSettings, kafka_name, load
from moldau.records.compression import Codec, compress

Partitioner: TypeAlias = Callable[[str, bytes | None, bytes | None, int], int]
"""Called with topic, key, value and the number of partitions; returns one of them."""

RETRIES_MAX: Final = (1 << 31) - 1
IDEMPOTENT_IN_FLIGHT_MAX: Final = 5
"""A broker remembers the last five batches of a producer: what is older it cannot recognize."""
ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(ClientSettings):
    """What a producer can be told; `load_producer_settings` checks that it makes sense."""

    acks: str = "all"
    """Who must have a record before it counts as delivered: all in sync, 1 (the leader), or 0."""
    enable_idempotence: bool = True
    """Whether brokers recognize what is sent twice, so that nothing is stored twice."""
    batch_size: int = 16_384
    """How many bytes of one partition travel together, before compression."""
    linger_ms: int = 5
    """How long a batch that is not full waits for more."""
    buffer_memory: int = 32 << 20
    """How many bytes may wait to be delivered, before `send` waits itself."""
    max_block_ms: int = 60_000
    """How long `send` waits for room, or for a topic to be known."""
    max_request_size: int = 1 << 20
    """The largest record, before compression, and how much one request carries."""
    max_in_flight_requests_per_connection: int = IDEMPOTENT_IN_FLIGHT_MAX
    """How many requests are sent to a broker before the first is answered."""
    retries: int = RETRIES_MAX
    """How often a batch is sent again; `delivery.timeout.ms` ends it in any case."""
    delivery_timeout_ms: int = 120_000
    """How long after `send` a record may be on its way, all attempts included."""
    compression_type: str = "none"
    """none, gzip, snappy, lz4 or zstd."""
    compression_gzip_level: int = field(default=-1, metadata={"min": -1})
    compression_lz4_level: int = 9
    compression_zstd_level: int = field(default=3, metadata={"min": -131_072})
    partitioner: str | Partitioner = "default"
    """Where records go that name no partition: `default` (by the hash of the key; without a key, a
    partition for a batch's worth of bytes, then another), `round-robin`, or a function."""
    partitioner_ignore_keys: bool = False
    """Whether the default partitioner treats all records as if they had no key."""

    transactional_id: str | None = None
    """Who the producer is over restarts; with it, records are sent in transactions."""
    transaction_timeout_ms: int = 60_000
    """How long a transaction may be open before the coordinator aborts it."""
    transaction_two_phase_commit_enable: bool = False
    """Whether transactions can be prepared, and never expire (KIP-939)."""

    @property
    def required_acks(self) -> int:
        """The number that a request carries."""
        return ACKS[str(self.acks)]

    @property
    def codec(self) -> Codec:
        """The codec that batches are compressed with."""
        return Codec[self.compression_type.upper()]

    @property
    def level(self) -> int | None:
        """The codec's level; None for its default."""
        level = {
            Codec.GZIP: self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }.get(self.codec)
        return None if level == -1 and self.codec is Codec.GZIP else level


def load_producer_settings(
    servers: str | None, config: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> ProducerSettings:
    """Make settings as `load` does; `ConfigError` names those that contradict each other."""
    settings = load(ProducerSettings, servers, config, keywords)
    given = {name.replace(".", "_") for name in (config or {})} | set(keywords)
    _check_values(settings)
    _check_transactions(settings, given)
    is_given = "enable_idempotence" in given or settings.transactional_id is not None
    settings = _reconcile_idempotence(settings, is_given=is_given)
    return _reconcile_timeouts(settings, is_given="delivery_timeout_ms" in given)


def _check_values(settings: ProducerSettings) -> None:
    if str(settings.acks) not in ACKS:
        raise ConfigError(f"acks={settings.acks}: all, 1 or 0 is allowed")
    if settings.compression_type.upper() not in Codec.__members__:
        allowed = ", ".join(name.lower() for name in Codec.__members__)
        raise ConfigError(f"compression.type={settings.compression_type}: {allowed} are allowed")
    try:
        compress(settings.codec, b"", settings.level)
    except ValueError as error:
        name = f"compression.{settings.compression_type}.level"
        raise ConfigError(f"{name}={settings.level}: {error}") from None
    for name in ("max_in_flight_requests_per_connection", "max_request_size", "buffer_memory"):
        if getattr(settings, name) < 1:
            raise ConfigError(f"{kafka_name(name)}={getattr(settings, name)}: 1 or more is allowed")
    if isinstance(settings.partitioner, str):
        if settings.partitioner not in ("default", "round-robin"):
            raise ConfigError(
                f"partitioner={settings.partitioner}: default, round-robin or a function is allowed"
            )
    elif not callable(settings.partitioner):
        raise ConfigError(f"partitioner={settings.partitioner!r}: it cannot be called")


def _check_transactions(settings: ProducerSettings, given: set[str]) -> None:
    if settings.transactional_id is not None and not settings.enable_idempotence:
        raise ConfigError("transactional.id does not go with enable.idempotence=false")
    if settings.transaction_two_phase_commit_enable:
        if settings.transactional_id is None:
            raise ConfigError("transaction.two.phase.commit.enable=true needs a transactional.id")
        if "transaction_timeout_ms" in given:
            raise ConfigError(
                "transaction.timeout.ms does not go with transaction.two.phase.commit.enable=true: "
                "such transactions never expire"
            )


def _reconcile_idempotence(settings: ProducerSettings, *, is_given: bool) -> ProducerSettings:
    """Kafka's rule: who asks for idempotence must be able to have it; who does not, goes without.

    Only more requests in flight than a broker remembers are an error in any case.
    """
    if not settings.enable_idempotence:
        return settings
    if settings.max_in_flight_requests_per_connection > IDEMPOTENT_IN_FLIGHT_MAX:
        raise ConfigError(
            "max.in.flight.requests.per.connection="
            f"{settings.max_in_flight_requests_per_connection}: with enable.idempotence=true "
            f"at most {IDEMPOTENT_IN_FLIGHT_MAX} are allowed"
        )
    if settings.required_acks == -1 and settings.retries:
        return settings
    if is_given:
        wrong = f"acks={settings.acks}" if settings.required_acks != -1 else "retries=0"
        raise ConfigError(f"enable.idempotence=true does not go with {wrong}")
    return replace(settings, enable_idempotence=False)


def _reconcile_timeouts(settings: ProducerSettings, *, is_given: bool) -> ProducerSettings:
    """A record must have the time to be sent once: that is Kafka's least `delivery.timeout.ms`."""
    least_ms = settings.linger_ms + settings.request_timeout_ms
    if settings.delivery_timeout_ms >= least_ms:
        return settings
    if is_given:
        raise ConfigError(
            f"delivery.timeout.ms={settings.delivery_timeout_ms}: linger.ms + request.timeout.ms, "
            f"which are {least_ms}, or more is allowed"
        )
    return replace(settings, delivery_timeout_ms=least_ms)
