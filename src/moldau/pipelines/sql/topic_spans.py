"""Which offsets of a topic a question is about, and where nobody knows them any more.

Whichever engine answers asks here, so that all of them refuse the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import AsOf, AsOfOffsets, AsOfTime
from moldau.protocol.errors import ErrorCode

POLICY: Final = "cleanup.policy"
LAG: Final = "min.compaction.lag.ms"


class NoTopicError(PipelineError):
    """A name that no topic has; the caller, which knows all names, says which is like it."""

    def __init__(self, name: str, close: str = "") -> None:
        there = close or ": SHOW TOPICS lists what is there"
        super().__init__(f"there is no stream, table or topic {name}{there}")
        self.name = name


@dataclass(frozen=True, slots=True)
class OffsetSpan:
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
            raise NoTopicError(topic) from None
        raise
    return sorted(consumer.assignment)


def find_spans(consumer: Consumer, topic: str, as_of: AsOf | None) -> list[OffsetSpan]:
    """Return what to read of a topic's partitions, which are assigned already.

    `PipelineError` if what was there is deleted, or if it is not there yet.
    """
    keys = sorted(each for each in consumer.assignment if each.topic == topic)
    starts, ends = consumer.beginning_offsets(keys), consumer.end_offsets(keys)
    match as_of:
        case None:
            return [OffsetSpan(key, starts[key], ends[key]) for key in keys]
        case AsOfTime():
            cut = _first_from(consumer, ends, as_of.ms)
            for key in keys:
                # Something was there before this record, and nobody knows what.
                if cut[key] <= starts[key] and starts[key] > 0 and starts[key] < ends[key]:
                    raise _gone(key, starts[key], f"TIMESTAMP AS OF '{as_of}'")
        case AsOfOffsets():
            offsets = dict(as_of.offsets)
            cut = {key: offsets.get(key.partition, 0) for key in keys}
            if strange := set(offsets) - {key.partition for key in keys}:
                raise PipelineError(
                    f"VERSION AS OF: topic {topic} has {len(keys)} partitions, and none "
                    f"{min(strange)}"
                )
            for key in keys:
                if 0 < cut[key] < starts[key]:
                    raise _gone(key, starts[key], f"VERSION AS OF offset {cut[key]}")
                if cut[key] > ends[key]:
                    raise PipelineError(
                        f"VERSION AS OF offset {cut[key]}: partition {key} ends at {ends[key]}"
                    )
    return [OffsetSpan(key, starts[key], max(cut[key], starts[key])) for key in keys]


def check_compaction(
    admin: Admin,
    consumer: Consumer,
    topic: str,
    as_of: AsOf,
    spans: Sequence[OffsetSpan],
    now_ms: int,
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
        # Where nothing was there yet, nothing was taken.
        asked = [each for each in spans if len(each)]
        ends = consumer.end_offsets([each.key for each in asked])
        first = _first_from(consumer, ends, horizon_ms)
        is_safe = all(each.end >= first[each.key] for each in asked)
    if not is_safe:
        raise PipelineError(
            f"topic {topic} has {POLICY}={settings[POLICY]} and {LAG}={lag_ms}: compaction may "
            f"have taken rows of that time; AS OF goes back {lag_ms} ms at most, raise {LAG} "
            "for more"
        )


def _first_from(
    consumer: Consumer, ends: Mapping[TopicPartition, int], ms: int
) -> dict[TopicPartition, int]:
    """Return where the first record is that is as late as this; that is the end, if there is none.

    Behind the end there may be records of a transaction that is open.
    """
    # Times before 1970 are words of the protocol: -1 is the end.
    found = consumer.offsets_for_times(dict.fromkeys(ends, max(ms, 0)))
    return {
        key: ends[key] if at is None else min(at.offset, ends[key]) for key, at in found.items()
    }


def _gone(key: TopicPartition, start: int, what: str) -> PipelineError:
    return PipelineError(
        f"{what}: partition {key} begins at offset {start}, what was before is deleted "
        "(retention.ms, retention.bytes, or DeleteRecords)"
    )
