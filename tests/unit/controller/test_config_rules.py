"""The codes with which wrong values are refused, resource by resource."""

import pytest

from moldau.controller.config_rules import SettingRules
from moldau.coordination.refusal import Refusal
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.settings.effective import BrokerLayers
from moldau.protocol.errors import ErrorCode

TOPIC, BROKER, METRICS, GROUP = ResourceType


@pytest.mark.parametrize(
    ("resource_type", "name", "value", "code"),
    [
        (TOPIC, "retention.ms", "x", ErrorCode.INVALID_CONFIG),
        (TOPIC, "nope", "1", ErrorCode.INVALID_CONFIG),
        (BROKER, "log.retention.ms", "x", ErrorCode.INVALID_REQUEST),
        (BROKER, "node.id", "7", ErrorCode.INVALID_REQUEST),
        (METRICS, "interval.ms", "1", ErrorCode.INVALID_REQUEST),
        (METRICS, "nope", "1", ErrorCode.INVALID_REQUEST),
        (METRICS, "match", "zz=1", ErrorCode.INVALID_CONFIG),
        (GROUP, "consumer.session.timeout.ms", "1", ErrorCode.INVALID_CONFIG),
        (GROUP, "nope", "1", ErrorCode.INVALID_CONFIG),
    ],
)
def test_codes(resource_type: ResourceType, name: str, value: str, code: ErrorCode) -> None:
    rules = SettingRules(BrokerLayers())
    with pytest.raises(Refusal) as refused:
        rules.check(Resource(resource_type, "1"), {name: value}, {})
    assert refused.value.code is code
    assert name in (refused.value.message or "")
