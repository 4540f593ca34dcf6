import pytest

from moldau.kernel.errors import ProtocolError
from moldau.protocol import framing
from moldau.protocol.apis import APIS, Api, UnknownApiError
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from moldau.protocol.schema import Buffer

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=7, member_id="m")


def unframed(pieces: list[Buffer]) -> bytes:
    """Join a frame's pieces, check the size in front and take it off."""
    frame = b"".join(pieces)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    return frame[4:]


def request(version: int, client_id: str | None = "me") -> bytes:
    pieces = framing.encode_request(HEARTBEAT, version, correlation_id=42, client_id=client_id)
    return unframed(pieces)


def test_a_request_before_flexible_versions_byte_by_byte() -> None:
    assert request(0) == bytes.fromhex("000c 0000 0000002a 0002") + b"me" + bytes.fromhex(
        "0001 67 00000007 0001 6d"
    )


def test_a_flexible_request_keeps_the_client_ids_long_length() -> None:
    assert request(4) == bytes.fromhex("000c 0004 0000002a 0002") + b"me" + bytes.fromhex(
        "00 02 67 00000007 02 6d 00 00"
    )


@pytest.mark.parametrize("client_id", ["", "me", "žluťoučký", None])
@pytest.mark.parametrize("version", range(5))
def test_a_request_comes_back(version: int, client_id: str | None) -> None:
    header, message = framing.decode_request(request(version, client_id))
    assert message == HEARTBEAT
    assert header.request_api_key == 12
    assert header.request_api_version == version
    assert header.correlation_id == 42
    assert header.client_id == client_id


@pytest.mark.parametrize("each", APIS, ids=lambda each: each.name)
def test_every_version_of_every_api_goes_through_frames(each: Api) -> None:
    for version in range(each.first, each.last + 1):
        sent = each.request_class()
        pieces = framing.encode_request(sent, version, correlation_id=1, client_id=None)
        header, message = framing.decode_request(unframed(pieces))
        assert (header.request_api_key, header.request_api_version) == (each.key, version)
        assert message == sent
        answer = each.response_class()
        frame = unframed(framing.encode_response(answer, version, correlation_id=-1))
        assert framing.decode_response(frame, each.response_class, version) == (-1, answer)


def test_the_answer_to_api_versions_has_no_tags_in_its_header() -> None:
    frame = unframed(framing.encode_response(ApiVersionsResponse(), 3, correlation_id=5))
    assert frame == bytes.fromhex("00000005 0000 01 00000000 00")


def test_an_unsupported_version_of_api_versions_leaves_the_header_to_answer_with() -> None:
    frame = unframed(
        framing.encode_request(ApiVersionsRequest(), 5, correlation_id=9, client_id="new")
    )
    frame = frame[:2] + (77).to_bytes(2) + frame[4:] + b"what only version 77 knows"
    with pytest.raises(framing.UnsupportedVersionError, match="ApiVersions has no version 77") as e:
        framing.decode_request(frame)
    assert e.value.header.correlation_id == 9
    assert e.value.header.client_id == "new"


def test_an_unknown_api_key_is_refused() -> None:
    with pytest.raises(UnknownApiError, match="no API has key 999"):
        framing.decode_request((999).to_bytes(2) + request(0)[2:])


def test_every_truncation_of_a_request_is_refused() -> None:
    whole = request(4)
    for size in range(len(whole)):
        with pytest.raises(ProtocolError):
            framing.decode_request(whole[:size])


def test_bytes_behind_a_message_are_refused() -> None:
    with pytest.raises(ProtocolError, match="1 bytes behind the message"):
        framing.decode_request(request(4) + b"\0")
    answer = unframed(framing.encode_response(HeartbeatResponse(), 4, correlation_id=1))
    with pytest.raises(ProtocolError, match="2 bytes behind the message"):
        framing.decode_response(answer + b"\0\0", HeartbeatResponse, 4)


def test_records_are_views_of_the_frame_and_leave_by_reference() -> None:
    records = b"r" * 5000
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[partition])
    produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    pieces = framing.encode_request(produce, 9, correlation_id=1, client_id=None)
    assert any(
        piece is records or (isinstance(piece, memoryview) and piece.obj is records)
        for piece in pieces
    )
    frame = unframed(pieces)
    _, message = framing.decode_request(frame)
    assert isinstance(message, ProduceRequest)
    decoded = message.topic_data[0].partition_data[0].records
    assert isinstance(decoded, memoryview)
    assert decoded.obj is frame
    assert decoded == records
