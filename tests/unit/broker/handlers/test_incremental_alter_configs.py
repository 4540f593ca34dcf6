"""IncrementalAlterConfigs through the broker, and the broker's own loggers."""

import pytest

from moldau.broker.handlers.incremental_alter_configs import handle_incremental_alter_configs
from moldau.controller.alter_configs import ConfigOperation
from moldau.metadata.configs import Resource
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.unit.broker.administration import Administration

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, _ = ConfigOperation


@pytest.fixture
def admin() -> Administration:
    admin = Administration()
    admin.cluster.create("orders")
    return admin


def change(
    resource_type: int, name: str, config: str, operation: int = SET, value: str | None = "1000"
) -> AlterConfigsResource:
    altered = AlterableConfig(name=config, config_operation=operation, value=value)
    return AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[altered])


def alter(
    admin: Administration, *resources: AlterConfigsResource, version: int = 1, **fields
) -> list[int]:
    request = IncrementalAlterConfigsRequest(resources=resources, **fields)
    responses = admin.ask(handle_incremental_alter_configs, request, version).responses
    asked = [(each.resource_type, each.resource_name) for each in resources]
    assert [(each.resource_type, each.resource_name) for each in responses] == asked
    return [each.error_code for each in responses]


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("resource_type", "name"), [(TOPIC, "orders"), (BROKER, "1"), (BROKER, ""), (GROUP, "g")]
)
def test_every_kind(admin: Administration, resource_type: int, name: str, version: int) -> None:
    wish = change(resource_type, name, "retention.ms")
    assert alter(admin, wish, version=version, validate_only=True) == [0]
    values = admin.broker.image.configs
    assert "retention.ms" not in values.of(Resource(resource_type, name))
    assert alter(admin, wish, version=version) == [0]
    assert values.of(Resource(resource_type, name))["retention.ms"] == "1000"
    gone = change(resource_type, name, "retention.ms", DELETE, None)
    assert alter(admin, gone, version=version) == [0]
    assert "retention.ms" not in values.of(Resource(resource_type, name))


def test_answers_keep_the_order_of_the_request(admin: Administration) -> None:
    codes = alter(
        admin,
        change(LOGGER, "1", "root", SET, "DEBUG"),
        change(TOPIC, "nope", "retention.ms"),
        change(BROKER, "2", "log.retention.ms"),
        change(TOPIC, "orders", "retention.ms"),
        change(99, "x", "y"),
    )
    assert codes == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        0,
        ErrorCode.INVALID_REQUEST,
    ]


def test_a_resource_named_twice(admin: Administration) -> None:
    twice = [change(TOPIC, "orders", "retention.ms"), change(TOPIC, "orders", "cleanup.policy")]
    invalid = ErrorCode.INVALID_REQUEST
    assert alter(admin, *twice) == [invalid, invalid]
    assert admin.controller.commands == []
    twice = [change(LOGGER, "1", "root", SET, "WARN"), change(LOGGER, "1", "root", SET, "WARN")]
    assert alter(admin, *twice) == [invalid, invalid]
    assert admin.loggers.own["root"] == "INFO"


def test_loggers(admin: Administration) -> None:
    wish = change(LOGGER, "1", "moldau.log", SET, "TRACE")
    assert alter(admin, wish, validate_only=True) == [0]
    assert admin.loggers.own["moldau.log"] is None
    assert alter(admin, wish) == [0]
    assert admin.loggers.own["moldau.log"] == "TRACE"
    assert alter(admin, change(LOGGER, "1", "moldau.log", DELETE, None)) == [0]
    assert admin.loggers.own["moldau.log"] is None
    assert admin.controller.commands == []


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (change(LOGGER, "1", "nope", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (change(LOGGER, "1", "root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (change(LOGGER, "1", "root", SET, None), ErrorCode.INVALID_CONFIG),
        (change(LOGGER, "1", "root", DELETE, None), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "1", "root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "2", "root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "", "root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "x", "root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_loggers(
    admin: Administration, wish: AlterConfigsResource, code: ErrorCode
) -> None:
    assert alter(admin, wish) == [code]
    assert admin.loggers.own == {"root": "INFO", "moldau.log": None}
    both = [*wish.configs, *wish.configs]
    wish = AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=both)
    assert alter(admin, wish) == [ErrorCode.INVALID_REQUEST]
