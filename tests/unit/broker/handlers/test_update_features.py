"""UpdateFeatures through the broker."""

import pytest

from moldau.broker.handlers.update_features import handle_update_features
from moldau.metadata.features import find_level
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.broker.administration import Administration

LEVEL_4_2 = find_level("4.2")
LEVEL_4_3 = find_level("4.3")


def request(name: str, level: int) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=name, max_version_level=level)
    return UpdateFeaturesRequest(feature_updates=[update])


@pytest.mark.parametrize("version", range(3))
def test_upgrade(version: int) -> None:
    assert LEVEL_4_2 is not None
    assert LEVEL_4_3 is not None
    admin = Administration(level=LEVEL_4_2)
    upgrade = request("metadata.version", LEVEL_4_3)
    answer = admin.ask(handle_update_features, upgrade, version)
    assert answer.error_code == 0
    assert len(answer.results) == (1 if version < 2 else 0)
    assert admin.broker.image.level == LEVEL_4_3


def test_refusal_and_the_quorums_level() -> None:
    admin = Administration()
    assert admin.ask(handle_update_features, request("nope", 1)).error_code == (
        ErrorCode.INVALID_UPDATE_VERSION
    )
    answer = admin.ask(handle_update_features, request("kraft.version", 1))
    assert answer.error_code == 0
    assert admin.controller.commands[-1].kraft_version == 1
