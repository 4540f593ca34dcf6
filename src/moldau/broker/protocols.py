"""Which protocols groups may speak in this cluster."""

from moldau.broker.broker import Broker
from moldau.coordination.refusal import Refusal
from moldau.groups.group import GroupType
from moldau.metadata.features import GROUP_VERSION
from moldau.protocol.errors import ErrorCode


def check_consumer_protocol(broker: Broker) -> None:
    """Refuse consumer groups (KIP-848) where they are not in use."""
    is_level = broker.image.levels.get(GROUP_VERSION, 0) >= 1
    protocols = broker.settings.group_coordinator_rebalance_protocols
    if not is_level or GroupType.CONSUMER.value not in protocols:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, None)
