"""ListConfigResources v0-v1. v0 client metrics only (KIP-1000); v1 any type (KIP-1142)."""

from collections.abc import Iterator
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import BROKER_LOGGER
from moldau.metadata.configs import ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

LISTED: Final = (*ResourceType, BROKER_LOGGER)


def handle_list_config_resources(
    broker: Broker, call: Call, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Answer with what can be configured, or with what has configs where that is all we know."""
    asked = set(request.resource_types or LISTED)
    if call.version == 0:
        asked = {ResourceType.CLIENT_METRICS}
    if not asked <= set(LISTED):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found = [
        ConfigResource(resource_name=name, resource_type=resource_type)
        for resource_type in sorted(asked)
        for name in _names(broker, resource_type)
    ]
    return ListConfigResourcesResponse(config_resources=found)


def _names(broker: Broker, resource_type: int) -> Iterator[str]:
    image = broker.image
    if resource_type == ResourceType.TOPIC:
        yield from sorted(topic.name for topic in image.topics)
    elif resource_type in (ResourceType.BROKER, BROKER_LOGGER):
        yield from map(str, sorted(image.brokers.by_id))
    else:
        yield from sorted(
            resource.name
            for resource in image.configs.resources()
            if resource.type == resource_type
        )
