"""ListConfigResources, and its older self for client metrics."""

import pytest

from moldau.broker.handlers.list_config_resources import handle_list_config_resources
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from moldau.protocol.stored.cluster_metadata import ConfigRecord
from tests.unit.broker.administration import Administration


@pytest.fixture
def admin() -> Administration:
    admin = Administration()
    admin.cluster.create("orders")
    for resource_type, name in ((16, "m"), (32, "g")):
        admin.broker.image.replay(
            ConfigRecord(resource_type=resource_type, resource_name=name, name="n", value="v")
        )
    return admin


@pytest.mark.parametrize(
    ("version", "asked", "found"),
    [
        (0, [], [(16, "m")]),
        (1, [], [(2, "orders"), (4, "1"), (8, "1"), (16, "m"), (32, "g")]),
        (1, [32, 16, 16], [(16, "m"), (32, "g")]),
        (1, [8], [(8, "1")]),
    ],
)
def test_listed(
    admin: Administration, version: int, asked: list[int], found: list[tuple[int, str]]
) -> None:
    request = ListConfigResourcesRequest(resource_types=asked)
    answer = admin.ask(handle_list_config_resources, request, version)
    assert answer.error_code == 0
    named = [(each.resource_type, each.resource_name) for each in answer.config_resources]
    assert named == found


@pytest.mark.parametrize("asked", [[0], [3], [2, 64]])
def test_unknown_types(admin: Administration, asked: list[int]) -> None:
    request = ListConfigResourcesRequest(resource_types=asked)
    answer = admin.ask(handle_list_config_resources, request)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == ()
