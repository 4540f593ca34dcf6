"""Places in topics as options of the connector: where AS OF ends, and what is latest now."""

import json
import time
from collections.abc import Iterable

from moldau.client.admin import Admin
from moldau.client.sync_consumer import Consumer
from moldau.pipelines.connector.cluster_offsets import ClusterOffsets
from moldau.pipelines.connector.opening import open_client
from moldau.pipelines.connector.source_options import SourceOptions, read_source_options
from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.relations import Relation, RelationKind
from moldau.pipelines.sql.topic_spans import assign_topic, check_compaction, find_spans
from moldau.pipelines.streams.sources import ClusterOptions


def ending_options(
    cluster: ClusterOptions, relation: Relation, as_of: AsOf | None
) -> dict[str, str]:
    """Return where a batch ends: now, or AS OF; `PipelineError` if nobody knows that any more."""
    if as_of is None:
        return {}
    topic = relation.topic
    options = _options(cluster, topic)
    with open_client(Consumer, config=options.consumer_config) as consumer:
        assign_topic(consumer, topic)
        spans = find_spans(consumer, topic, as_of)
        if relation.kind is RelationKind.TABLE:
            with open_client(Admin, config=options.admin_config) as admin:
                check_compaction(admin, consumer, topic, as_of, spans, int(time.time() * 1000))
    ends = {str(each.key.partition): each.end for each in spans}
    return {"endingOffsets": json.dumps({topic: ends})}


def latest_now(cluster: ClusterOptions, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return options to begin at what is latest now, and not when Spark gets to ask for it."""
    found = {}
    for topic in topics:
        with ClusterOffsets(_options(cluster, topic)) as offsets:
            latest = offsets.latest(offsets.require_partitions())
        places = {str(place.partition): offset for place, offset in latest.items()}
        found[topic] = {"startingOffsets": json.dumps({topic: places})}
    return found


def _options(cluster: ClusterOptions, topic: str) -> SourceOptions:
    return read_source_options({**cluster.options, "subscribe": topic, "columns": "key"})
