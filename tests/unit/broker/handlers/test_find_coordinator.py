"""FindCoordinator, while there are no coordinators."""

import pytest

from moldau.broker.handlers.find_coordinator import handle_find_coordinator
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.administration import Administration

SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"


@pytest.mark.parametrize("key_type", [0, 1])
@pytest.mark.parametrize("version", range(7))
def test_not_available_yet(version: int, key_type: int) -> None:
    keys = {"key": "g"} if version < 4 else {"coordinator_keys": ["g", "h"]}
    request = FindCoordinatorRequest(key_type=key_type if version else 0, **keys)
    answer = Administration().ask(handle_find_coordinator, request, version)
    found = [answer] if version < 4 else answer.coordinators
    if version >= 4:
        assert [each.key for each in found] == ["g", "h"]
    for each in found:
        assert each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (each.node_id, each.host, each.port) == (-1, "", -1)


@pytest.mark.parametrize(
    ("version", "key_type", "key", "code"),
    [
        (1, 9, "g", ErrorCode.INVALID_REQUEST),
        (6, 9, "g", ErrorCode.INVALID_REQUEST),
        (3, 2, SHARE_KEY, ErrorCode.INVALID_REQUEST),
        (5, 2, SHARE_KEY, ErrorCode.INVALID_REQUEST),
        (6, 2, "g", ErrorCode.INVALID_REQUEST),
        (6, 2, "g:not-an-id:0", ErrorCode.INVALID_REQUEST),
        (6, 2, SHARE_KEY, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_other_keys(version: int, key_type: int, key: str, code: ErrorCode) -> None:
    keys = {"key": key} if version < 4 else {"coordinator_keys": [key]}
    request = FindCoordinatorRequest(key_type=key_type, **keys)
    answer = Administration().ask(handle_find_coordinator, request, version)
    found = answer if version < 4 else answer.coordinators[0]
    assert found.error_code == code
    assert found.error_message
