"""Codes of coordinators, as those know them who are told."""

import pytest

from moldau.coordination.refusal_codes import PASSING, ErrorReader, told_code
from moldau.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("reader", "code", "told", "since"),
    [
        (ErrorReader.ADD_OFFSETS_TO_TXN, "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", 2),
        (ErrorReader.ADD_PARTITIONS_TO_TXN, "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", 2),
        (ErrorReader.END_TXN, "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", 2),
        (ErrorReader.INIT_PRODUCER_ID, "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", 4),
        (ErrorReader.OFFSET_COMMIT, "GROUP_ID_NOT_FOUND", "ILLEGAL_GENERATION", 9),
        (ErrorReader.PRODUCE, "CONCURRENT_TRANSACTIONS", "NOT_ENOUGH_REPLICAS", 12),
        (ErrorReader.PRODUCE, "TRANSACTION_ABORTABLE", "INVALID_TXN_STATE", 11),
        (
            ErrorReader.TXN_OFFSET_COMMIT,
            "COORDINATOR_LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE",
            2,
        ),
        (ErrorReader.TXN_OFFSET_COMMIT, "GROUP_ID_NOT_FOUND", "ILLEGAL_GENERATION", 6),
        (ErrorReader.TXN_OFFSET_COMMIT, "STALE_MEMBER_EPOCH", "ILLEGAL_GENERATION", 6),
        (ErrorReader.TXN_OFFSET_COMMIT, "TRANSACTION_ABORTABLE", "INVALID_TXN_STATE", 4),
    ],
)
def test_clients_of_later_versions_know_the_code_itself(
    reader: ErrorReader, code: str, told: str, since: int
) -> None:
    assert told_code(reader, ErrorCode[code], since - 1) is ErrorCode[told]
    assert told_code(reader, ErrorCode[code], since) is ErrorCode[code]


@pytest.mark.parametrize(
    ("reader", "told"),
    [
        (ErrorReader.MARKER_WRITER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorReader.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorReader.SHARE_MEMBER, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_those_who_know_of_no_coordinator_try_again(reader: ErrorReader, told: ErrorCode) -> None:
    assert {told_code(reader, code, 1000) for code in PASSING} == {told}


def test_a_code_without_an_entry_is_told_as_it_is() -> None:
    for reader in ErrorReader:
        told = told_code(reader, ErrorCode.INVALID_GROUP_ID)
        match reader:
            case ErrorReader.OTHER_CALLER:
                assert told is ErrorCode.NOT_COORDINATOR
            case ErrorReader.SHARE_MEMBER:
                assert told is ErrorCode.UNKNOWN_SERVER_ERROR
            case _:
                assert told is ErrorCode.INVALID_GROUP_ID
