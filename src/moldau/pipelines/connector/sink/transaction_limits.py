"""How long a sink's transactions may be open: for ever with two-phase commit, else a timeout."""

from typing import Final

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError

TIMEOUT_MAX: Final = "transaction.max.timeout.ms"
TWO_PHASE: Final = "transaction.two.phase.commit.enable"
TIMEOUT_MS_DEFAULT: Final = 900_000
"""What brokers allow unless they are told otherwise, for whoever may not ask them."""


def transaction_settings(admin: Admin, timeout_ms: int | None) -> dict[str, object]:
    """Return a producer's settings, by what was wanted and what the broker allows."""
    if timeout_ms is not None:
        return {"transaction.timeout.ms": timeout_ms}
    broker = admin.describe_cluster().nodes[0].node_id
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = admin.describe_configs([resource], keys=[TIMEOUT_MAX, TWO_PHASE])[resource]
    if isinstance(found, KafkaError):
        return {"transaction.timeout.ms": TIMEOUT_MS_DEFAULT}
    if TWO_PHASE in found and found[TWO_PHASE].value == "true":
        return {TWO_PHASE: True}
    return {"transaction.timeout.ms": int(found[TIMEOUT_MAX].value or TIMEOUT_MS_DEFAULT)}
