from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatResponse


def test_codes_are_consecutive() -> None:
    assert [error.value for error in ErrorCode] == list(range(-1, 137))


def test_what_a_client_may_retry() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.CONCURRENT_TRANSACTIONS.retriable
    assert not ErrorCode.NONE.retriable
    assert not ErrorCode.UNKNOWN_SERVER_ERROR.retriable
    assert not ErrorCode.INVALID_RECORD.retriable


def test_a_code_goes_into_a_message_and_comes_out_as_its_number() -> None:
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    decoded = HeartbeatResponse.decode(response.encode(4), 4)
    assert decoded.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert ErrorCode(decoded.error_code).name == "REBALANCE_IN_PROGRESS"
