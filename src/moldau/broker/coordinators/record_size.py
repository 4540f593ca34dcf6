"""How large a coordinator's record may be."""

from typing import TYPE_CHECKING, Final

from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.settings.effective import topic_settings
from moldau.records.batch import HEADER_BYTES

if TYPE_CHECKING:
    from moldau.broker.broker_view import BrokerView

RECORD_OVERHEAD_MAX: Final = 32
"""What a record takes in a batch beside its key and value, at most."""


def record_bytes_max(broker: "BrokerView", topic: str) -> int:
    """Return how large key and value may be together, by the settings of the topic."""
    overrides = broker.image.configs.of(Resource(ResourceType.TOPIC, topic))
    largest = topic_settings(broker.settings, overrides).max_message_bytes
    return largest - HEADER_BYTES - RECORD_OVERHEAD_MAX
