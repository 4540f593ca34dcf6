"""StreamsGroupTopologyDescriptionUpdate, API key 93: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class TopologyDescriptionNode(Struct):
    name: str = field(string)
    node_type: int = field(int8)
    source_topics: Sequence[str] = field(Array(string))
    sink_topic: str | None = field(string, nullable=0, default=None)
    stores: Sequence[str] = field(Array(string))
    successors: Sequence[str] = field(Array(string))


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field(string)
    nodes: Sequence[TopologyDescriptionNode] = field(Array(TopologyDescriptionNode))


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(TopologyDescriptionNode)


class TopologyDescription(Struct):
    subtopologies: Sequence[TopologyDescriptionSubtopology] = field(
        Array(TopologyDescriptionSubtopology)
    )
    global_stores: Sequence[TopologyDescriptionGlobalStore] = field(
        Array(TopologyDescriptionGlobalStore)
    )


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, versions=(0, 0), flexible=0
):
    group_id: str = field(string)
    member_id: str = field(string)
    topology_epoch: int = field(int32)
    topology_description: TopologyDescription = field(TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(
    Message, api_key=93, versions=(0, 0), flexible=0
):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
