"""What each setting does here: honoured, or not honoured and why; the one place that says so."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.combinations import bounds_of
from moldau.metadata.settings.kafka_resources import (
    BrokerQuotaSettings,
    ClientMetricsSettings,
    ClientQuotaSettings,
    GroupSettings,
    IpQuotaSettings,
    TopicSettings,
)
from moldau.metadata.settings.setting import Settings

SupportTable: TypeAlias = Mapping[str, str]
"""Names, each with a note. What is not honoured may be the beginning of names with a * behind;
the longest that fits counts."""


@dataclass(frozen=True, slots=True)
class Support:
    """`note` says why a setting is not honoured, or what is special about how it is."""

    is_honoured: bool
    note: str = ""


def support_of(group: type[Settings], name: str) -> Support:
    """Return what a setting of `group` does; a KeyError means that nobody has said it yet."""
    honoured, refused = TABLES[group]
    best = max((key for key in (*honoured, *refused) if _fits(key, name)), key=len, default=None)
    if best is None:
        raise KeyError(name)
    is_honoured = best in honoured
    return Support(is_honoured, (honoured if is_honoured else refused)[best])


def _fits(key: str, name: str) -> bool:
    return name.startswith(key[:-1]) if key.endswith("*") else name == key


_CAPPED: Final = "when the topic is created, and at most as many as there are brokers"
_CLUSTER: Final = "there is one node; this comes with clusters"
_BUFFER: Final = "unless it is set, the system fits the buffer to each connection, as for -1"
_CODE: Final = "no setting names code to load"
_CREATED: Final = "when the topic is created"
_FIVE_SECONDS: Final = "written every five seconds, if it has changed"
_STREAMS: Final = "comes with groups of Kafka Streams (KIP-1071)"
_LOOP: Final = "one event loop serves a broker; for more cores, start more brokers"
_PARKED: Final = "a parked request leaves the waiting room when it is answered; nothing is purged"
_QUOTAS: Final = "comes with quotas"
_RATES: Final = "Prometheus computes rates from counters"
_SECURITY: Final = "comes with security; a listener that needs it is refused"
_BATCHED: Final = "what is decided in one turn of the loop is written together"
_TESTS: Final = "an internal setting of Kafka's own tests"
_TIERED: Final = "there is no tiered storage"


def _group_bounds() -> Iterator[tuple[str, str]]:
    """Return the settings of a broker that bound those of groups, each with what it does."""
    for name in GroupSettings.declared:
        for bound, word in zip(bounds_of(name), ("least", "most"), strict=True):
            if bound in BrokerSettings.declared:
                yield bound, f"the {word} that a group's {name} may be set to"


BROKER_HONOURED: Final[SupportTable] = {
    **dict(_group_bounds()),
    # Who and where the node is.
    "advertised.listeners": "without it each client is told the address that it connected to",
    "broker.id": "the older name of node.id",
    "broker.rack": "",
    "controller.listener.names": "a quorum of one voter needs no such listener",
    "inter.broker.listener.name": "",
    "listener.security.protocol.map": "",
    "listeners": "localhost is 127.0.0.1 and ::1",
    "node.id": "",
    "process.roles": "broker,controller until there are clusters",
    # Connections.
    "connections.max.idle.ms": "",
    "max.connection.creation.rate": "",
    "max.connections": "",
    "max.connections.per.ip": "",
    "max.connections.per.ip.overrides": "",
    "queued.max.request.bytes": "large requests over all connections",
    "socket.listen.backlog.size": "",
    "socket.receive.buffer.bytes": _BUFFER,
    "socket.request.max.bytes": "",
    "socket.send.buffer.bytes": _BUFFER,
    # Topics.
    "auto.create.topics.enable": "",
    "default.replication.factor": "",
    "delete.topic.enable": "",
    "min.insync.replicas": "",
    "num.partitions": "",
    # Fetching and producing.
    "compression.gzip.level": "",
    "compression.lz4.level": "",
    "compression.type": "",
    "compression.zstd.level": "",
    "fetch.max.bytes": "",
    "max.incremental.fetch.session.cache.slots": "in all of them, 500,000 partitions at most",
    "max.request.partition.size.limit": "",
    "message.max.bytes": "",
    "producer.id.expiration.check.interval.ms": "",
    "producer.id.expiration.ms": "",
    "telemetry.max.bytes": "",
    "add.partitions.to.txn.retry.backoff.max.ms": "how long a write waits for the end before it",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "",
    "transaction.max.timeout.ms": "",
    "transaction.partition.verification.enable": "",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "",
    "transaction.two.phase.commit.enable": "",
    "transactional.id.expiration.ms": "",
    # Consumer groups.
    "group.consumer.assignment.interval.ms": "",
    "group.consumer.assignors": "uniform and range; no setting names code to load",
    "group.consumer.heartbeat.interval.ms": "",
    "group.consumer.max.size": "",
    "group.consumer.migration.policy": "",
    "group.consumer.regex.refresh.interval.ms": "",
    "group.consumer.session.timeout.ms": "",
    "group.coordinator.rebalance.protocols": "classic is always in use",
    # Classic groups.
    "group.initial.rebalance.delay.ms": "",
    "group.max.session.timeout.ms": "",
    "group.max.size": "",
    "group.min.session.timeout.ms": "",
    # The log.
    "log.cleaner.backoff.ms": "",
    "log.cleaner.dedupe.buffer.size": "",
    "log.cleaner.delete.retention.ms": "",
    "log.cleaner.enable": "",
    "log.cleaner.io.buffer.load.factor": "",
    "log.cleaner.io.buffer.size": "",
    "log.cleaner.io.max.bytes.per.second": "",
    "log.cleaner.max.compaction.lag.ms": "",
    "log.cleaner.min.cleanable.ratio": "",
    "log.cleaner.min.compaction.lag.ms": "",
    "log.cleaner.threads": "",
    "log.cleanup.policy": "",
    "log.dir": "",
    "log.dirs": "",
    "log.flush.interval.messages": "",
    "log.flush.interval.ms": "",
    "log.index.interval.bytes": "",
    "log.index.size.max.bytes": "",
    "log.message.timestamp.after.max.ms": "",
    "log.message.timestamp.before.max.ms": "",
    "log.message.timestamp.type": "",
    "log.retention.bytes": "",
    "log.retention.check.interval.ms": "",
    "log.retention.hours": "",
    "log.retention.minutes": "",
    "log.retention.ms": "",
    "log.roll.hours": "",
    "log.roll.jitter.hours": "",
    "log.roll.jitter.ms": "",
    "log.roll.ms": "",
    "log.segment.bytes": "",
    "log.segment.delete.delay.ms": "",
    "num.io.threads": "they write appends of 512 KB and more; the event loop writes all others",
    "num.recovery.threads.per.data.dir": "at the start",
    # Internal topics.
    "offset.metadata.max.bytes": "",
    "offsets.commit.timeout.ms": "",
    "offsets.retention.check.interval.ms": "",
    "offsets.retention.minutes": "",
    "offsets.topic.num.partitions": _CREATED,
    "offsets.topic.replication.factor": _CAPPED,
    "offsets.topic.segment.bytes": _CREATED,
    "share.coordinator.state.topic.min.isr": _CAPPED,
    "share.coordinator.state.topic.num.partitions": _CREATED,
    "share.coordinator.state.topic.replication.factor": _CAPPED,
    "share.coordinator.state.topic.segment.bytes": _CREATED,
    "transaction.state.log.min.isr": _CAPPED,
    "transaction.state.log.num.partitions": _CREATED,
    "transaction.state.log.replication.factor": _CAPPED,
    "transaction.state.log.segment.bytes": _CREATED,
    # Share groups.
    "errors.deadletterqueue.auto.create.topics.enable": "",
    "errors.deadletterqueue.topic.name.prefix": "",
    "group.share.assignment.interval.ms": "",
    "group.share.delivery.count.limit": "",
    "group.share.heartbeat.interval.ms": "",
    "group.share.initialize.retry.interval.ms": "",
    "group.share.max.share.sessions": "",
    "group.share.max.size": "",
    "group.share.partition.max.record.locks": "",
    "group.share.record.lock.duration.ms": "",
    "group.share.session.timeout.ms": "",
    "share.coordinator.cold.partition.snapshot.interval.ms": "while older records are kept for it",
    "share.coordinator.snapshot.update.records.per.snapshot": "",
    "share.coordinator.state.topic.prune.interval.ms": "",
    # The metadata log.
    "metadata.log.dir": "",
    "metadata.log.max.record.bytes.between.snapshots": "",
    "metadata.log.max.snapshot.interval.ms": "",
    "metadata.log.segment.bytes": "",
    "metadata.log.segment.ms": "",
    "metadata.max.idle.interval.ms": "",
    "metadata.max.retention.bytes": "",
    "metadata.max.retention.ms": "",
    # Our own.
    "durability": "what an acknowledged write has reached; page-cache is Kafka's way",
    "metadata.version": "the release that a new data directory is formatted for",
    "moldau.batch.decompressed.max.bytes": "how large a compressed batch may be once opened",
    "moldau.connection.pending.max.bytes": "bytes read before they are answered",
    "moldau.connection.pending.max.requests": "requests read before they are answered",
    "moldau.connection.stall.max.ms": "how long a peer may stop inside a request or response",
    "moldau.connection.unsent.max.bytes": "how much one response may hold for a slow peer",
    "moldau.disk.free.warn.bytes": "a directory with less free space is worth a warning",
    "moldau.disk.reserve.bytes": "kept in each directory for metadata and deletions",
    "moldau.fetch.sendfile.min.bytes": "larger reads leave by sendfile where the system can tell "
    "what the page cache has; -1: none do",
    "moldau.metrics.listener": "metrics over HTTP, in Prometheus' format",
    "moldau.open.files.max": "how many segment and index files stay open",
    "moldau.shutdown.max.ms": "how long requests may take to end when the broker stops",
}

BROKER_NOT_HONOURED: Final[SupportTable] = {
    "add.partitions.to.txn.retry.backoff.ms": "a write is told when it may go on; nothing is tried",
    "alter.config.policy.class.name": _CODE,
    "alter.log.dirs.replication.quota.*": _QUOTAS,
    "authorizer.class.name": _SECURITY,
    "auto.leader.rebalance.enable": _CLUSTER,
    "background.threads": "background work runs on the event loop and in a small pool",
    "broker.heartbeat.interval.ms": _CLUSTER,
    "broker.session.timeout.ms": _CLUSTER,
    "client.quota.callback.class": _CODE,
    "config.providers": _CODE,
    "connection.failed.authentication.delay.ms": _SECURITY,
    "connections.max.reauth.ms": _SECURITY,
    "controlled.shutdown.enable": _CLUSTER,
    "controller.performance.*": "metrics measure the controller",
    "controller.quorum.*": "this node is the only voter; others come with clusters",
    "controller.quota.*": _QUOTAS,
    "controller.socket.timeout.ms": _CLUSTER,
    "cordoned.log.dirs": "no directory can be closed to new partitions yet",
    "create.topic.policy.class.name": _CODE,
    "delegation.token.*": _SECURITY,
    "delete.records.purgatory.*": _PARKED,
    "early.start.listeners": "all listeners open when the broker is ready",
    "fetch.purgatory.*": _PARKED,
    "follower.fetch.last.tiered.offset.enable": _TIERED,
    "group.streams.*": _STREAMS,
    "group.coordinator.append.linger.ms": "what is decided in one turn of the loop is one write",
    "group.coordinator.background.threads": _LOOP,
    "group.coordinator.cached.buffer.max.bytes": "no buffers are kept",
    "group.coordinator.threads": _LOOP,
    "group.share.assignors": "there is one, simple",
    "group.share.persister.class.name": _CODE,
    "initial.broker.registration.timeout.ms": _CLUSTER,
    "internal.metadata.*": _TESTS,
    "kafka.metrics.*": _CODE,
    "leader.imbalance.check.interval.seconds": _CLUSTER,
    "log.dir.failure.timeout.ms": _CLUSTER,
    "log.flush.scheduler.interval.ms": "what is due by flush.ms is synced within a second",
    "log.flush.start.offset.checkpoint.interval.ms": _FIVE_SECONDS,
    "log.flush.offset.checkpoint.interval.ms": "written at every roll, and every second of syncing",
    "log.initial.task.delay.ms": _TESTS,
    "log.local.retention.*": _TIERED,
    "log.preallocate": "segments grow as they are written",
    "metric.reporters": _CODE,
    "metrics.*": _RATES,
    "num.network.threads": _LOOP,
    "num.replica.alter.log.dirs.threads": "partitions move between directories one by one",
    "num.replica.fetchers": _CLUSTER,
    "offsets.load.buffer.size": "a coordinator reads its log in slices of 64 KB",
    "offsets.topic.compression.codec": "coordinators' records are not compressed",
    "principal.builder.class": _CODE,
    "producer.purgatory.*": _PARKED,
    "queued.max.requests": "a request starts when it is read; pending requests have bounds",
    "quota.*": _QUOTAS,
    "remote.*": _TIERED,
    "replica.*": _CLUSTER,
    "replica.high.watermark.checkpoint.interval.ms": _FIVE_SECONDS,
    "replication.quota.*": _QUOTAS,
    "request.timeout.ms": _CLUSTER,
    "sasl.*": _SECURITY,
    "security.*": _SECURITY,
    "server.max.startup.time.ms": "a start takes as long as recovery takes",
    "share.coordinator.append.linger.ms": _BATCHED,
    "share.coordinator.cached.buffer.max.bytes": _BATCHED,
    "share.coordinator.load.buffer.size": "a coordinator's topic is read in slices of 64 KB",
    "share.coordinator.state.topic.compression.codec": "coordinators' records are not compressed",
    "share.coordinator.threads": _LOOP,
    "share.coordinator.write.timeout.ms": "who waits is told when a write is stored, or fails",
    "share.fetch.purgatory.*": _PARKED,
    "socket.connection.setup.*": _CLUSTER,
    "ssl.*": _SECURITY,
    "transaction.state.log.load.buffer.size": "a log is replayed in slices of 64 KiB",
    "unclean.leader.election.*": _CLUSTER,
    "unstable.*": "only released versions are declared",
}

TOPIC_HONOURED: Final[SupportTable] = {
    "cleanup.policy": "",
    "compression.gzip.level": "",
    "compression.lz4.level": "",
    "compression.type": "",
    "compression.zstd.level": "",
    "delete.retention.ms": "",
    "errors.deadletterqueue.group.enable": "",
    "file.delete.delay.ms": "",
    "flush.messages": "",
    "flush.ms": "",
    "index.interval.bytes": "",
    "max.compaction.lag.ms": "",
    "max.message.bytes": "",
    "message.timestamp.after.max.ms": "",
    "message.timestamp.before.max.ms": "",
    "message.timestamp.type": "",
    "min.cleanable.dirty.ratio": "",
    "min.compaction.lag.ms": "",
    "min.insync.replicas": "",
    "retention.bytes": "",
    "retention.ms": "",
    "segment.bytes": "",
    "segment.index.bytes": "",
    "segment.jitter.ms": "",
    "segment.ms": "",
}

TOPIC_NOT_HONOURED: Final[SupportTable] = {
    "follower.replication.throttled.replicas": _QUOTAS,
    "internal.segment.bytes": _TESTS,
    "leader.replication.throttled.replicas": _QUOTAS,
    "local.retention.*": _TIERED,
    "preallocate": BROKER_NOT_HONOURED["log.preallocate"],
    "remote.*": _TIERED,
    "unclean.leader.election.enable": _CLUSTER,
}

GROUP_HONOURED: Final[SupportTable] = {
    "consumer.assignment.interval.ms": "",
    "consumer.heartbeat.interval.ms": "",
    "consumer.session.timeout.ms": "",
    "errors.deadletterqueue.copy.record.enable": "",
    "errors.deadletterqueue.topic.name": "from share.version 2 on",
    "share.assignment.interval.ms": "",
    "share.auto.offset.reset": "",
    "share.delivery.count.limit": "",
    "share.heartbeat.interval.ms": "",
    "share.isolation.level": "",
    "share.partition.max.record.locks": "",
    "share.record.lock.duration.ms": "",
    "share.renew.acknowledge.enable": "",
    "share.session.timeout.ms": "",
}

TABLES: Final[Mapping[type[Settings], tuple[SupportTable, SupportTable]]] = {
    BrokerSettings: (BROKER_HONOURED, BROKER_NOT_HONOURED),
    TopicSettings: (TOPIC_HONOURED, TOPIC_NOT_HONOURED),
    GroupSettings: (GROUP_HONOURED, {"streams.*": _STREAMS}),
    ClientMetricsSettings: ({"interval.ms": "", "match": "", "metrics": ""}, {}),
    BrokerQuotaSettings: ({}, {"*": _QUOTAS}),
    ClientQuotaSettings: ({}, {"*": _QUOTAS}),
    IpQuotaSettings: ({}, {"*": _QUOTAS}),
}
