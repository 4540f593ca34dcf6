"""How long a sink's transactions may be open: for ever with two-phase commit, else a timeout."""

from typing import Final

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError

TIMEOUT_MAX: Final = "transaction.max.timeout.ms"
TWO_PHASE: Final = "transaction.two.phase.commit.enable"
TIMEOUT_MS_DEFAULT: Final = 900_000
"""What brokers allow unless they are told otherwise, for whoever may not ask them."""


def choose_timeout(admin: Admin) -> int | None:
    """Return the longest timeout that the broker allows; None if it has two-phase commit."""
    broker = admin.describe_cluster().nodes[0].node_id
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = admin.describe_configs([resource], keys=[TIMEOUT_MAX, TWO_PHASE])[resource]
    if isinstance(found, KafkaError):
        return TIMEOUT_MS_DEFAULT
    if TWO_PHASE in found and found[TWO_PHASE].value == "true":
        return None
    return int(found[TIMEOUT_MAX].value or TIMEOUT_MS_DEFAULT)


def transaction_settings(timeout_ms: int | None) -> dict[str, object]:
    """Return a producer's settings for a timeout."""
    return {TWO_PHASE: True} if timeout_ms is None else {"transaction.timeout.ms": timeout_ms}
