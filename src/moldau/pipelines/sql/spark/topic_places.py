"""Places in topics as options of the connector: where AS OF ends, and what is latest now."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC

from moldau.pipelines.connector.cluster_offsets import ClusterOffsets
from moldau.pipelines.connector.source_options import SourceOptions, read_source_options
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import AsOf, AsOfOffsets, AsOfTime
from moldau.pipelines.streams.sources import Cluster


def ending_options(cluster: Cluster, topic: str, as_of: AsOf | None) -> dict[str, str]:
    """Return where a batch ends: now, at a time, or at offsets."""
    match as_of:
        case AsOfTime(at):
            # As everywhere here, a time without a zone is one of UTC.
            zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
            return {"endingTimestamp": str(int(zoned.timestamp() * 1000))}
        case AsOfOffsets(offsets):
            return {"endingOffsets": _all_partitions(cluster, topic, dict(offsets))}
        case None:
            return {}


def latest_now(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return options to begin at what is latest now, and not when Spark gets to ask for it."""
    found = {}
    for topic in topics:
        with ClusterOffsets(_options(cluster, topic)) as offsets:
            latest = offsets.latest(offsets.require_partitions())
        places = {str(place.partition): offset for place, offset in latest.items()}
        found[topic] = {"startingOffsets": json.dumps({topic: places})}
    return found


def _all_partitions(cluster: Cluster, topic: str, given: Mapping[int, int]) -> str:
    """Return offsets of all partitions: of those that are not named, nothing is there yet."""
    with ClusterOffsets(_options(cluster, topic)) as offsets:
        partitions = offsets.require_partitions()
        earliest = offsets.earliest(partitions)
    numbers = {place.partition for place in partitions}
    if unknown := sorted(given.keys() - numbers):
        raise PipelineError(f"VERSION AS OF: topic {topic} has no partition {unknown[0]}")
    ends = {place.partition: earliest[place] for place in partitions} | dict(given)
    return json.dumps({topic: {str(partition): offset for partition, offset in ends.items()}})


def _options(cluster: Cluster, topic: str) -> SourceOptions:
    return read_source_options({**cluster.options, "subscribe": topic, "columns": "key"})
