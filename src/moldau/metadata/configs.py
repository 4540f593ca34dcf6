"""Configs of the cluster image: what was set for topics, brokers, groups and client metrics."""

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from moldau.protocol.stored.cluster_metadata import ConfigRecord


class ResourceType(enum.IntEnum):
    """What can be configured, by the number that Kafka gives it."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """What is configured; an empty name stands for all brokers."""

    type: int
    name: str


ALL_BROKERS: Final = Resource(ResourceType.BROKER, "")

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Configs:
    """The configs of every resource that has some."""

    def __init__(self, values: dict[Resource, dict[str, str]] | None = None) -> None:
        self._values = values or {}

    def of(self, resource: Resource) -> Mapping[str, str]:
        """Return what was set for a resource."""
        return self._values.get(resource, _NOTHING)

    def resources(self) -> Iterator[Resource]:
        """Walk the resources that have configs."""
        return iter(self._values)

    def copy(self) -> "Configs":
        """Return a copy that does not change with this one."""
        return Configs({resource: dict(values) for resource, values in self._values.items()})

    def remove_topic(self, name: str) -> None:
        """Forget the configs of a topic that is gone."""
        self._values.pop(Resource(ResourceType.TOPIC, name), None)

    def replay(self, record: ConfigRecord) -> None:
        """Apply a config that is set, or unset when it has no value."""
        resource = Resource(record.resource_type, record.resource_name)
        if record.value is not None:
            self._values.setdefault(resource, {})[record.name] = record.value
            return
        values = self._values.get(resource, {})
        values.pop(record.name, None)
        if not values:
            self._values.pop(resource, None)

    def records(self) -> Iterator[ConfigRecord]:
        """Return the records that set everything again."""
        for resource, values in self._values.items():
            for name, value in values.items():
                yield ConfigRecord(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    name=name,
                    value=value,
                )
