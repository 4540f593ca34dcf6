"""Whole requests and responses: a header, then the message; client and server side.

Encoders return the pieces of a frame, its size in front. Decoders take a frame without its size.
"""

from typing import TypeVar

from moldau._native.codec import Plan, encode_frame
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import api, api_of
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.schema import Buffer, Message

AnyMessage = TypeVar("AnyMessage", bound=Message)

# The plans of header and message, found again without looking up the API.
_RESPONSE_PLANS: dict[tuple[type[Message], int], tuple[Plan, Plan]] = {}


class UnsupportedVersionError(ProtocolError):
    """A request whose header is whole, in a version that its API does not have.

    A broker answers an ApiVersions request like that (KIP-511), so it gets the header.
    """

    def __init__(self, header: RequestHeader) -> None:
        name = api(header.request_api_key).name
        super().__init__(f"{name} has no version {header.request_api_version}")
        self.header = header


def encode_request(
    message: Message, version: int, *, correlation_id: int, client_id: str | None
) -> list[Buffer]:
    """Encode a request's frame."""
    called = api_of(type(message))
    header = RequestHeader(
        request_api_key=called.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    header_plan = RequestHeader.plan(called.request_header_version(version))
    return encode_frame(header_plan, header, message.plan(version), message)


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Decode the header; return it and the position of the message behind it."""
    if len(frame) < 4:
        raise ProtocolError(f"a request of {len(frame)} bytes")
    called = api(int.from_bytes(frame[0:2], signed=True))
    version = int.from_bytes(frame[2:4], signed=True)
    plan = RequestHeader.plan(called.request_header_version(version))
    header: RequestHeader
    header, position = plan.decode_from(frame)
    return header, position


def decode_request(frame: Buffer) -> tuple[RequestHeader, Message]:
    """Decode a request; `UnsupportedVersionError` if only its version is wrong."""
    header, position = decode_request_header(frame)
    called = api(header.request_api_key)
    version = header.request_api_version
    if not called.has_version(version):
        raise UnsupportedVersionError(header)
    message: Message
    message, end = called.request_class.plan(version).decode_from(frame, position)
    _require_end(frame, end)
    return header, message


def encode_response(message: Message, version: int, *, correlation_id: int) -> list[Buffer]:
    """Encode a response's frame."""
    plans = _RESPONSE_PLANS.get((type(message), version))
    if plans is None:
        header_version = api_of(type(message)).response_header_version(version)
        plans = ResponseHeader.plan(header_version), message.plan(version)
        _RESPONSE_PLANS[type(message), version] = plans
    return encode_frame(plans[0], ResponseHeader(correlation_id=correlation_id), plans[1], message)


def decode_response(
    frame: Buffer, response: type[AnyMessage], version: int
) -> tuple[int, AnyMessage]:
    """Decode a response to a request of this version; return its correlation id and itself."""
    header_plan = ResponseHeader.plan(api_of(response).response_header_version(version))
    header, position = header_plan.decode_from(frame)
    message: AnyMessage
    message, end = response.plan(version).decode_from(frame, position)
    _require_end(frame, end)
    return header.correlation_id, message


def _require_end(frame: Buffer, end: int) -> None:
    if end != len(frame):
        raise ProtocolError(f"{len(frame) - end} bytes behind the message")
