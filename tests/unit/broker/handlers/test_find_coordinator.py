"""FindCoordinator: who leads the partition that a key belongs to."""

import pytest

from moldau.broker.handlers.find_coordinator import handle_find_coordinator
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.administration import Administration

SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"


def find(version: int, *keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    named = {"key": keys[0]} if version < 4 else {"coordinator_keys": keys}
    return FindCoordinatorRequest(key_type=key_type, **named)


@pytest.mark.parametrize("version", range(7))
def test_the_first_that_looks_waits_for_the_topic(version: int) -> None:
    admin = Administration()
    connection = admin.send(handle_find_coordinator, find(version, "g", "h"), version)
    assert not connection.answers
    admin.settle()
    answer = connection.answer
    found = [answer] if version < 4 else answer.coordinators
    if version >= 4:
        assert [each.key for each in found] == ["g", "h"]
    for each in found:
        assert each.error_code == ErrorCode.NONE
        assert (each.node_id, each.host, each.port) == (1, "localhost", 9092)
    assert admin.broker.image.topics.find("__consumer_offsets") is not None
    again = admin.send(handle_find_coordinator, find(version, "g", "h"), version)
    assert again.answers == [answer], "there is nothing to wait for any more"


def test_share_states_have_a_coordinator_of_their_own() -> None:
    admin = Administration()
    connection = admin.send(handle_find_coordinator, find(6, SHARE_KEY, key_type=2), 6)
    admin.settle()
    (found,) = connection.answer.coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert admin.broker.image.topics.find("__share_group_state") is not None


def test_not_available_while_nobody_makes_the_topic() -> None:
    admin = Administration()
    admin.controller.is_gone = True
    connection = admin.send(handle_find_coordinator, find(4, "g"), 4)
    admin.settle()
    (found,) = connection.answer.coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (found.node_id, found.host, found.port) == (-1, "", -1)


@pytest.mark.parametrize(
    ("version", "key_type", "key", "code"),
    [
        (1, 9, "g", ErrorCode.INVALID_REQUEST),
        (6, 9, "g", ErrorCode.INVALID_REQUEST),
        (3, 2, SHARE_KEY, ErrorCode.INVALID_REQUEST),
        (5, 2, SHARE_KEY, ErrorCode.INVALID_REQUEST),
        (6, 2, "g", ErrorCode.INVALID_REQUEST),
        (6, 2, "g:not-an-id:0", ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_keys(version: int, key_type: int, key: str, code: ErrorCode) -> None:
    request = find(version, key, key_type=key_type)
    answer = Administration().ask(handle_find_coordinator, request, version)
    found = answer if version < 4 else answer.coordinators[0]
    assert found.error_code == code
    assert found.error_message
