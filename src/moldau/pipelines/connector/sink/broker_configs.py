"""What the sink asks of a broker's configs: how long transactions may be open, who makes topics."""

from collections.abc import Mapping
from typing import Final

from moldau.client.admin import Admin
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import KafkaError
from moldau.pipelines.connector.kept_clients import KeptClients
from moldau.pipelines.connector.sink.protocol import BatchKind
from moldau.pipelines.errors import PipelineError
from moldau.protocol.errors import ErrorCode

TIMEOUT_MAX: Final = "transaction.max.timeout.ms"
TWO_PHASE: Final = "transaction.two.phase.commit.enable"
AUTO_CREATE: Final = "auto.create.topics.enable"
TIMEOUT_MS_DEFAULT: Final = "900000"
"""What brokers allow unless they are told otherwise, for whoever may not ask them."""


def choose_timeout(clients: KeptClients, kind: BatchKind) -> int | None:
    """Return the longest timeout that the broker allows; None if it has two-phase commit.

    What never expires needs a writer that comes back to it: a query does, a job does not. A
    broker that allows less than it did refuses a producer, and after an error it is asked anew.
    """
    found = clients.keep(TIMEOUT_MAX, lambda: _ask(clients.admin, TIMEOUT_MAX, TWO_PHASE))
    if found.get(TWO_PHASE) == "true" and kind is not BatchKind.JOB:
        return None
    return int(found.get(TIMEOUT_MAX, TIMEOUT_MS_DEFAULT))


def transaction_settings(timeout_ms: int | None) -> dict[str, object]:
    """Return a producer's settings for a timeout."""
    return {TWO_PHASE: True} if timeout_ms is None else {"transaction.timeout.ms": timeout_ms}


def check_topic(admin: Admin, topic: str) -> None:
    """Say at once that a topic is missing; a producer would wait for somebody to create it."""
    found = admin.describe_topics([topic])[topic]
    if not isinstance(found, KafkaError):
        return
    is_missing = found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_missing and _ask(admin, AUTO_CREATE).get(AUTO_CREATE) != "false":
        return
    raise PipelineError(str(found))


def _ask(admin: Admin, *keys: str) -> Mapping[str, str]:
    """Return some configs of a broker; none where that is not allowed."""
    broker = admin.describe_cluster().nodes[0].node_id
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = admin.describe_configs([resource], keys=keys)[resource]
    if isinstance(found, KafkaError):
        return {}
    return {name: each.value for name, each in found.items() if each.value is not None}
