"""What a broker's settings must be together, checked before it starts or changes."""

from collections.abc import Iterable, Iterator

from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import topic_settings
from moldau.metadata.settings.kafka_resources import GroupSettings, TopicSettings
from moldau.metadata.settings.kinds import LONG_MAX
from moldau.metadata.settings.listeners import check_listeners
from moldau.metadata.settings.setting import SettingError

MEBI = 1 << 20


def broker_problems(settings: BrokerSettings) -> Iterator[str]:
    """Yield a line for each rule that the settings break together."""
    try:
        check_listeners(settings)
    except SettingError as error:
        yield str(error)
    yield from _node_problems(settings)
    yield from _log_problems(settings)
    yield from _connection_problems(settings)
    yield from topic_problems(topic_settings(settings, {}))


def topic_problems(settings: TopicSettings) -> Iterator[str]:
    """Yield a line for each rule that a topic's settings break together."""
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms:
        yield (
            f"min.compaction.lag.ms: {settings.min_compaction_lag_ms} is more than"
            f" max.compaction.lag.ms, which is {settings.max_compaction_lag_ms}"
        )
    if settings.remote_storage_enable:
        yield "remote.storage.enable: there is no tiered storage here; it must be false"


def bounds_of(name: str) -> tuple[str, str]:
    """Return the broker settings, if they are declared, between which a group's setting must be."""
    kind, _, rest = name.partition(".")
    rest = rest.removeprefix("num.")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"


def group_problems(
    broker: BrokerSettings, group: GroupSettings, names: Iterable[str]
) -> Iterator[str]:
    """Yield a line for each of these settings of a group that a broker's bounds do not allow."""
    for name in sorted(names):
        value = group.values[name]
        lowest, highest = bounds_of(name)
        low, high = broker.values.get(lowest), broker.values.get(highest)
        if isinstance(value, int) and isinstance(low, int) and value < low:
            yield f"{name}: {value} is less than {lowest}, which is {low}"
        if isinstance(value, int) and isinstance(high, int) and value > high:
            yield f"{name}: {value} is more than {highest}, which is {high}"


def _node_problems(settings: BrokerSettings) -> Iterator[str]:
    if settings.broker_id not in {-1, settings.node_id}:
        yield f"broker.id: {settings.broker_id} is not node.id, which is {settings.node_id}"
    if set(settings.process_roles) != {"broker", "controller"}:
        yield "process.roles: it must be broker,controller: a node is both until there are clusters"
    voters = [voter.partition("@")[0] for voter in settings.controller_quorum_voters]
    if voters and voters != [str(settings.node_id)]:
        yield (
            f"controller.quorum.voters: this node, {settings.node_id}, must be the only voter"
            " until there are clusters"
        )
    # Serving everybody where somebody asked for rules is worse than not serving.
    if settings.authorizer_class_name:
        yield "authorizer.class.name: there is no authorizer yet; leave it out to serve everybody"


def _log_problems(settings: BrokerSettings) -> Iterator[str]:
    topic = topic_settings(settings, {})
    if not 1 <= topic.segment_ms <= LONG_MAX:
        yield f"log.roll.ms: {topic.segment_ms} is not allowed; it must be at least 1"
    if topic.segment_jitter_ms < 0:
        yield f"log.roll.jitter.ms: {topic.segment_jitter_ms} is not allowed; it must be at least 0"
    if topic.retention_ms == 0 or topic.retention_ms < -1:
        yield (
            f"log.retention.ms: {topic.retention_ms} is not allowed; it must be at least 1, or -1"
            " to keep records for ever"
        )
    if settings.log_cleaner_dedupe_buffer_size <= MEBI:
        yield (
            f"log.cleaner.dedupe.buffer.size: {settings.log_cleaner_dedupe_buffer_size} is not"
            f" allowed; it must be more than {MEBI}"
        )


def _connection_problems(settings: BrokerSettings) -> Iterator[str]:
    queued = settings.queued_max_request_bytes
    if 0 < queued < settings.socket_request_max_bytes:
        yield (
            f"queued.max.request.bytes: {queued} is less than socket.request.max.bytes, which is"
            f" {settings.socket_request_max_bytes}; the largest request would never be read"
        )
    overrides = settings.max_connections_per_ip_overrides
    if settings.max_connections_per_ip == 0 and not overrides:
        yield (
            "max.connections.per.ip: 0 lets nobody in; it is allowed only with"
            " max.connections.per.ip.overrides"
        )
    for pair in filter(None, overrides.split(",")):
        host, _, count = pair.rpartition(":")
        if not host.strip() or not count.strip().isdecimal():
            yield f"max.connections.per.ip.overrides: {pair.strip()!r} is not host:count"
