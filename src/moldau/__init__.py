"""Moldau: Kafka in Python: a broker, a client, commands, and pipelines on Spark.

    import moldau

    with moldau.Producer("localhost:9092") as producer:
        producer.send("clicks", b"hello").result()

The clients are imported when they are first asked for: `import moldau` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau._native.fetched import Record
    from moldau.client import errors
    from moldau.client.acknowledgements import AcknowledgeType
    from moldau.client.admin import Admin, AsyncAdmin
    from moldau.client.arrow_records import ArrowRecords
    from moldau.client.consumer import AsyncConsumer
    from moldau.client.descriptions import ConfigResource, ResourceType
    from moldau.client.group_metadata import GroupMetadata
    from moldau.client.group_offsets import OffsetAndMetadata
    from moldau.client.producer import AsyncProducer, Producer
    from moldau.client.share_consumer import AsyncShareConsumer, ShareConsumer
    from moldau.client.sync_consumer import Consumer
    from moldau.client.transactional import PreparedTransaction
    from moldau.kernel.ids import TopicPartition

__version__ = "0.1.0.dev0"

__all__ = [
    "Producer",
    "Consumer",
    "ShareConsumer",
    "Admin",
    "AsyncProducer",
    "AsyncConsumer",
    "AsyncShareConsumer",
    "AsyncAdmin",
    "Record",
    "ArrowRecords",
    "TopicPartition",
    "OffsetAndMetadata",
    "AcknowledgeType",
    "GroupMetadata",
    "PreparedTransaction",
    "ConfigResource",
    "ResourceType",
    "errors",
]

_MODULES = {
    "Producer": "moldau.client.producer",
    "Consumer": "moldau.client.sync_consumer",
    "Admin": "moldau.client.admin",
    "AsyncProducer": "moldau.client.producer",
    "AsyncConsumer": "moldau.client.consumer",
    "AsyncAdmin": "moldau.client.admin",
    "ShareConsumer": "moldau.client.share_consumer",
    "AsyncShareConsumer": "moldau.client.share_consumer",
    "AcknowledgeType": "moldau.client.acknowledgements",
    "GroupMetadata": "moldau.client.group_metadata",
    "PreparedTransaction": "moldau.client.transactional",
    "Record": "moldau._native.fetched",
    "ArrowRecords": "moldau.client.arrow_records",
    "TopicPartition": "moldau.kernel.ids",
    "OffsetAndMetadata": "moldau.client.group_offsets",
    "ConfigResource": "moldau.client.descriptions",
    "ResourceType": "moldau.client.descriptions",
}


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("moldau.client.errors")
    if name not in _MODULES:
        raise AttributeError(f"module 'moldau' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
