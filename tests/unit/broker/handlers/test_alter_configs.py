"""AlterConfigs through the broker."""

import pytest

from moldau.broker.handlers.alter_configs import handle_alter_configs
from moldau.metadata.configs import Resource, ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from tests.unit.broker.administration import Administration

ORDERS = Resource(ResourceType.TOPIC, "orders")


def wish(resource_type: int, name: str, **configs: str | None) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_named_is_unset(version: int) -> None:
    admin = Administration()
    admin.cluster.create("orders", configs={"cleanup.policy": "compact"})
    request = AlterConfigsRequest(resources=[wish(2, "orders", retention_ms="1")])
    [response] = admin.ask(handle_alter_configs, request, version).responses
    assert (response.error_code, response.resource_name) == (0, "orders")
    assert admin.broker.image.configs.of(ORDERS) == {"retention.ms": "1"}


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        (wish(2, "orders", retention_ms=None), ErrorCode.INVALID_REQUEST),
        (wish(2, "orders", nope="1"), ErrorCode.INVALID_CONFIG),
        (wish(2, "nope", retention_ms="1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wish(4, "2"), ErrorCode.INVALID_REQUEST),
        (wish(8, "1", root="INFO"), ErrorCode.INVALID_REQUEST),
        (wish(1, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals_leave_the_others_alone(resource: AlterConfigsResource, code: ErrorCode) -> None:
    admin = Administration()
    admin.cluster.create("orders")
    admin.cluster.create("others")
    request = AlterConfigsRequest(resources=[resource, wish(2, "others", retention_ms="1")])
    answer = admin.ask(handle_alter_configs, request)
    assert [each.error_code for each in answer.responses] == [code, 0]
    assert answer.responses[0].error_message


def test_a_resource_named_twice() -> None:
    admin = Administration()
    admin.cluster.create("orders")
    request = AlterConfigsRequest(resources=[wish(2, "orders"), wish(2, "orders")])
    codes = [each.error_code for each in admin.ask(handle_alter_configs, request).responses]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
