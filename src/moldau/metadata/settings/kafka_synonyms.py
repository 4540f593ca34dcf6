"""Which settings stand for others, in the order in which they are asked."""

# Derived from Kafka's own tables by tools/generate_settings.py: change it there.

from collections.abc import Mapping
from typing import Final

TOPIC: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (
        ("log.roll.jitter.ms", 1),
        ("log.roll.jitter.hours", 3_600_000),
    ),
    "segment.ms": (
        ("log.roll.ms", 1),
        ("log.roll.hours", 3_600_000),
    ),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""A topic's setting: the brokers' settings, and how much of it one of them is."""

GROUP: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "consumer.assignment.interval.ms": (("group.consumer.assignment.interval.ms", 1),),
    "consumer.heartbeat.interval.ms": (("group.consumer.heartbeat.interval.ms", 1),),
    "consumer.session.timeout.ms": (("group.consumer.session.timeout.ms", 1),),
    "share.assignment.interval.ms": (("group.share.assignment.interval.ms", 1),),
    "share.delivery.count.limit": (("group.share.delivery.count.limit", 1),),
    "share.heartbeat.interval.ms": (("group.share.heartbeat.interval.ms", 1),),
    "share.partition.max.record.locks": (("group.share.partition.max.record.locks", 1),),
    "share.record.lock.duration.ms": (("group.share.record.lock.duration.ms", 1),),
    "share.session.timeout.ms": (("group.share.session.timeout.ms", 1),),
    "streams.assignment.interval.ms": (("group.streams.assignment.interval.ms", 1),),
    "streams.heartbeat.interval.ms": (("group.streams.heartbeat.interval.ms", 1),),
    "streams.initial.rebalance.delay.ms": (("group.streams.initial.rebalance.delay.ms", 1),),
    "streams.num.standby.replicas": (("group.streams.num.standby.replicas", 1),),
    "streams.session.timeout.ms": (("group.streams.session.timeout.ms", 1),),
}
"""A group's setting: the brokers' settings."""

BROKER: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "log.flush.interval.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
    "log.retention.hours": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ),
    "log.retention.minutes": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ),
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ),
    "log.roll.hours": (
        ("log.roll.ms", 1),
        ("log.roll.hours", 1),
    ),
    "log.roll.jitter.hours": (
        ("log.roll.jitter.ms", 1),
        ("log.roll.jitter.hours", 1),
    ),
    "log.roll.jitter.ms": (
        ("log.roll.jitter.ms", 1),
        ("log.roll.jitter.hours", 1),
    ),
    "log.roll.ms": (
        ("log.roll.ms", 1),
        ("log.roll.hours", 1),
    ),
}
"""A broker's setting: the brokers' settings that mean the same."""
