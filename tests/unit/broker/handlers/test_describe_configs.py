"""DescribeConfigs: every kind of resource, and what is shown of it."""

import pytest

from moldau.broker.handlers.describe_configs import (
    SLICE_RESOURCES,
    handle_describe_configs,
)
from moldau.metadata.settings.describe import SettingSource
from moldau.metadata.settings.kafka_resources import TopicSettings
from moldau.metadata.settings.kinds import SettingKind
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from moldau.protocol.stored.cluster_metadata import ConfigRecord
from tests.unit.broker.administration import Administration

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def admin() -> Administration:
    admin = Administration(settings={"log.retention.hours": "2", "ssl.key.password": "secret"})
    admin.cluster.create("orders", configs={"retention.ms": "1000"})
    return admin


def asked(
    resource_type: int, name: str, keys: list[str] | None = None, **fields
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=keys
    )
    return DescribeConfigsRequest(resources=[resource], **fields)


def describe(
    admin: Administration, request: DescribeConfigsRequest, version: int = 4
) -> DescribeConfigsResult:
    [result] = admin.ask(handle_describe_configs, request, version).results
    return result


def one(
    admin: Administration, request: DescribeConfigsRequest, version: int = 4
) -> DescribeConfigsResourceResult:
    [config] = describe(admin, request, version).configs
    return config


@pytest.mark.parametrize("version", range(5))
def test_defaults_are_not_missing(admin: Administration, version: int) -> None:
    shown = describe(admin, asked(TOPIC, "orders"), version)
    visible = [name for name, each in TopicSettings.declared.items() if not each.internal]
    assert [config.name for config in shown.configs] == visible
    by_name = {config.name: config for config in shown.configs}
    own, default = by_name["retention.ms"], by_name["segment.ms"]
    assert (own.value, default.value) == ("1000", "604800000")
    if version == 0:
        assert (own.is_default, default.is_default) == (False, True)
    else:
        assert (own.config_source, default.config_source) == (
            SettingSource.TOPIC,
            SettingSource.DEFAULT,
        )
    assert own.config_type == (SettingKind.LONG.value if version >= 3 else 0)


def test_names_that_are_asked_for(admin: Administration) -> None:
    assert len(describe(admin, asked(TOPIC, "orders", [])).configs) > 30
    assert one(admin, asked(TOPIC, "orders", ["nope", "segment.ms"])).name == "segment.ms"


@pytest.mark.parametrize("version", range(1, 5))
def test_synonyms(admin: Administration, version: int) -> None:
    request = asked(TOPIC, "orders", ["retention.ms"])
    assert one(admin, request, version).synonyms == ()
    request = asked(BROKER, "1", ["log.retention.hours"], include_synonyms=True)
    chain = [(each.name, each.value, each.source) for each in one(admin, request).synonyms]
    assert chain == [
        ("log.retention.hours", "2", SettingSource.STATIC_BROKER),
        ("log.retention.hours", "168", SettingSource.DEFAULT),
    ]


@pytest.mark.parametrize("version", range(3, 5))
def test_documentation(admin: Administration, version: int) -> None:
    request = asked(TOPIC, "orders", ["segment.ms"])
    assert one(admin, request, version).documentation is None
    request.include_documentation = True
    text = one(admin, request, version).documentation
    assert text == "A value of type long, at least 1. Without it: 604800000."
    request = asked(TOPIC, "orders", ["preallocate"], include_documentation=True)
    assert "It has no effect: " in (one(admin, request, version).documentation or "")


def test_every_setting_has_documentation(admin: Administration) -> None:
    for resource_type, name in ((TOPIC, "orders"), (BROKER, "1"), (METRICS, "m"), (GROUP, "g")):
        shown = describe(admin, asked(resource_type, name, include_documentation=True))
        assert all(config.documentation for config in shown.configs)


def test_secrets_are_hidden(admin: Administration) -> None:
    request = asked(BROKER, "1", ["ssl.key.password"], include_synonyms=True)
    secret = one(admin, request)
    assert (secret.value, secret.is_sensitive) == (None, True)
    assert [synonym.value for synonym in secret.synonyms] == [None]


def test_brokers(admin: Administration) -> None:
    assert len(describe(admin, asked(BROKER, "1")).configs) > 200
    assert one(admin, asked(BROKER, "1", ["node.id"])).read_only
    # Set when the cluster is formatted, because of eligible leader replicas.
    assert one(admin, asked(BROKER, "")).name == "min.insync.replicas"


def test_loggers(admin: Administration) -> None:
    shown = describe(admin, asked(LOGGER, "1")).configs
    assert [(each.name, each.value) for each in shown] == [
        ("root", "INFO"),
        ("moldau.log", "INFO"),
    ]
    assert {each.config_source for each in shown} == {SettingSource.DYNAMIC_BROKER_LOGGER}
    assert one(admin, asked(LOGGER, "1", ["root"])).name == "root"


def test_groups(admin: Administration) -> None:
    name = "consumer.session.timeout.ms"
    admin.broker.image.replay(
        ConfigRecord(resource_type=GROUP, resource_name="readers", name=name, value="46000")
    )
    own = one(admin, asked(GROUP, "readers", [name]))
    assert (own.value, own.config_source) == ("46000", SettingSource.GROUP)
    assert one(admin, asked(GROUP, "others", [name])).value == "45000"


def test_client_metrics(admin: Administration) -> None:
    admin.broker.image.replay(
        ConfigRecord(resource_type=METRICS, resource_name="m", name="interval.ms", value="2000")
    )
    shown = describe(admin, asked(METRICS, "m", include_synonyms=True)).configs
    assert [(each.name, each.value, each.config_source) for each in shown] == [
        ("interval.ms", "2000", SettingSource.CLIENT_METRICS),
        ("match", "", SettingSource.DEFAULT),
        ("metrics", "", SettingSource.DEFAULT),
    ]
    assert [len(each.synonyms) for each in shown] == [1, 0, 0]


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (0, "orders", ErrorCode.INVALID_REQUEST),
        (64, "orders", ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(admin: Administration, resource_type: int, name: str, code: ErrorCode) -> None:
    result = describe(admin, asked(resource_type, name))
    assert (result.error_code, result.configs) == (code, ())
    assert result.error_message
    assert (result.resource_type, result.resource_name) == (resource_type, name)


def test_an_unknown_type_spoils_the_request(admin: Administration) -> None:
    request = asked(TOPIC, "orders")
    request.resources = [*request.resources, *asked(3, "x").resources]
    results = admin.ask(handle_describe_configs, request).results
    assert [each.error_code for each in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_many_resources_are_described_in_slices(admin: Administration) -> None:
    request = DescribeConfigsRequest(resources=asked(TOPIC, "orders").resources * 10)
    connection = admin.send(handle_describe_configs, request)
    turns = 1
    while not connection.answers:
        admin.turn()
        turns += 1
    assert turns == -(-10 // SLICE_RESOURCES)
    assert len(connection.answer.results) == 10
