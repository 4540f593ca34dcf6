"""The admin client's part for configs: of topics, brokers, loggers, clients' metrics, groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from moldau.client.admin_base import AdminBase
from moldau.client.connection import Connection
from moldau.client.descriptions import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    ResourceType,
)
from moldau.client.errors import KafkaError, check
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

ConfigEntries = dict[str, ConfigEntry]
AnyKind = TypeVar("AnyKind", ConfigSource, ConfigType)


class ConfigAdmin(AdminBase):
    """The configs of everything that has some."""

    async def list_config_resources(self, kind: ResourceType) -> list[ConfigResource]:
        """Return what has configs, of a kind: clients' metrics and groups are listed only here."""

        async def ask(connection: Connection) -> list[ConfigResource]:
            request = ListConfigResourcesRequest()
            if connection.version_of(ListConfigResourcesRequest) >= 1:
                request.resource_types = [kind]
            answer = await connection.call(request, ListConfigResourcesResponse)
            check(answer.error_code, "list config resources")
            return [
                ConfigResource(kind, each.resource_name)
                for each in answer.config_resources
                if each.resource_type == kind
            ]

        return sorted(await self._ask_any(ask, "list config resources"))

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Sequence[str] | None = None,
        with_documentation: bool = False,
    ) -> dict[ConfigResource, ConfigEntries | KafkaError]:
        """Return the configs of each resource by name, or an error in its place.

        `keys` asks for some configs only.
        """
        answers: dict[ConfigResource, ConfigEntries | KafkaError] = {}
        for node_id, group in _by_node(resources).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.type,
                        resource_name=each.name,
                        configuration_keys=keys,
                    )
                    for each in group
                ],
                include_synonyms=True,
                include_documentation=with_documentation,
            )

            async def ask(
                connection: Connection, request: DescribeConfigsRequest = request
            ) -> DescribeConfigsResponse:
                return await connection.call(request, DescribeConfigsResponse)

            answer = await (
                self._ask_any(ask, "describe configs")
                if node_id is None
                else self._ask_node(node_id, ask, "describe configs")
            )
            for row in answer.results:
                resource = ConfigResource(ResourceType(row.resource_type), row.resource_name)
                if row.error_code:
                    answers[resource] = KafkaError(row.error_code, str(resource), row.error_message)
                else:
                    answers[resource] = {each.name: _entry(each) for each in row.configs}
        return answers

    async def alter_configs(
        self,
        resource: ConfigResource,
        *,
        set: Mapping[str, object] | None = None,  # noqa: A002 - what it does
        delete: Iterable[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change some configs of a resource, all or none of them.

        `delete` takes back what was set; `append` and `subtract` change lists.
        """
        changes = [AlterableConfig(name=name, config_operation=DELETE, value="") for name in delete]
        for operation, values in ((SET, set), (APPEND, append), (SUBTRACT, subtract)):
            changes += [
                AlterableConfig(name=name, config_operation=operation, value=config_text(value))
                for name, value in (values or {}).items()
            ]
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.type, resource_name=resource.name, configs=changes
                )
            ],
            validate_only=validate_only,
        )

        async def ask(connection: Connection) -> None:
            answer = await connection.call(request, IncrementalAlterConfigsResponse)
            row = answer.responses[0]
            check(row.error_code, str(resource), row.error_message)

        node_id = _node_of(resource)
        what = f"alter configs of {resource}"
        if node_id is None:
            await self._ask_controller(ask, what)
        else:
            await self._ask_node(node_id, ask, what)


def config_text(value: object) -> str | None:
    """Write a config's value as Kafka does."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _node_of(resource: ConfigResource) -> int | None:
    """Return the broker that alone knows its own configs and loggers, None for any."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return None
    if not resource.name.isdecimal():
        raise ValueError(f"a broker is named by its number, not {resource.name!r}")
    return int(resource.name)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        groups.setdefault(_node_of(resource), []).append(resource)
    return groups


def _entry(row: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        row.name,
        row.value,
        _known(ConfigSource, row.config_source),
        _known(ConfigType, row.config_type),
        row.read_only,
        row.is_sensitive,
        tuple(
            ConfigSynonym(each.name, each.value, _known(ConfigSource, each.source))
            for each in row.synonyms
        ),
        row.documentation,
    )


def _known(kind: type[AnyKind], number: int) -> AnyKind:
    """Return what a number stands for; what a newer broker says may be unknown here."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
