"""Which offsets of a topic a question is about."""

from dataclasses import dataclass
from typing import Final

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.sql.local.as_of import AsOf, AsOfOffsets, AsOfTime
from moldau.pipelines.sql.local.refusals import QueryError
from moldau.protocol.errors import ErrorCode

POLICY: Final = "cleanup.policy"
LAG: Final = "min.compaction.lag.ms"


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of one partition, from `start` up to and without `end`."""

    key: TopicPartition
    start: int
    end: int

    def __len__(self) -> int:
        return max(self.end - self.start, 0)


def assign_topic(consumer: Consumer, topic: str) -> list[TopicPartition]:
    """Have all partitions of a topic read, and return them."""
    try:
        consumer.assign_topics(topic)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise QueryError(
                f"there is no stream, table or topic {topic}: SHOW TOPICS lists what is there"
            ) from None
        raise
    return sorted(consumer.assignment)


def find_spans(consumer: Consumer, topic: str, as_of: AsOf | None) -> list[Span]:
    """Return what to read of a topic's partitions, which are assigned already."""
    keys = sorted(each for each in consumer.assignment if each.topic == topic)
    starts, ends = consumer.beginning_offsets(keys), consumer.end_offsets(keys)
    match as_of:
        case None:
            return [Span(key, starts[key], ends[key]) for key in keys]
        case AsOfTime(ms):
            found = consumer.offsets_for_times(dict.fromkeys(keys, ms))
            cut = {key: ends[key] if at is None else at.offset for key, at in found.items()}
            for key in keys:
                # Something was there before this record, and nobody knows what.
                if cut[key] <= starts[key] and starts[key] > 0 and starts[key] < ends[key]:
                    raise _gone(key, starts[key], f"TIMESTAMP AS OF {ms} ms")
        case AsOfOffsets(offsets):
            cut = {key: offsets.get(key.partition, 0) for key in keys}
            if strange := set(offsets) - {key.partition for key in keys}:
                raise QueryError(
                    f"VERSION AS OF: topic {topic} has {len(keys)} partitions, and none "
                    f"{min(strange)}"
                )
            for key in keys:
                if 0 < cut[key] < starts[key]:
                    raise _gone(key, starts[key], f"VERSION AS OF offset {cut[key]}")
                if cut[key] > ends[key]:
                    raise QueryError(
                        f"VERSION AS OF offset {cut[key]}: partition {key} ends at {ends[key]}"
                    )
    return [Span(key, starts[key], min(max(cut[key], starts[key]), ends[key])) for key in keys]


def check_compaction(
    admin: Admin, consumer: Consumer, topic: str, as_of: AsOf, spans: list[Span], now_ms: int
) -> None:
    """Refuse a table of which compaction may have taken rows that were there at that time.

    What is younger than `min.compaction.lag.ms` is not compacted, and neither is what it replaced.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource]
    if isinstance(found, KafkaError):
        raise found
    settings = {name: entry.value for name, entry in found.items()}
    if "compact" not in (settings.get(POLICY) or ""):
        return
    lag_ms = int(settings.get(LAG) or 0)
    horizon_ms = now_ms - lag_ms
    if isinstance(as_of, AsOfTime):
        is_safe = as_of.ms >= horizon_ms
    else:
        keys = [each.key for each in spans]
        young = consumer.offsets_for_times(dict.fromkeys(keys, max(horizon_ms, 0)))
        ends = consumer.end_offsets(keys)
        first = {key: ends[key] if at is None else at.offset for key, at in young.items()}
        is_safe = all(each.end >= first[each.key] for each in spans)
    if not is_safe:
        raise QueryError(
            f"topic {topic} has {POLICY}={settings[POLICY]} and {LAG}={lag_ms}: compaction may "
            f"have taken rows of that time; AS OF goes back {lag_ms} ms at most, raise {LAG} "
            "for more"
        )


def _gone(key: TopicPartition, start: int, what: str) -> QueryError:
    return QueryError(
        f"{what}: partition {key} begins at offset {start}, what was before is deleted "
        "(retention.ms, retention.bytes, or DeleteRecords)"
    )
