"""What a client is told when no part of its request is to blame."""

from typing import Final

from moldau.protocol.errors import ErrorCode

_TEXTS: Final = {
    ErrorCode.NOT_CONTROLLER: "No controller is active at the moment; try again.",
    ErrorCode.REQUEST_TIMED_OUT: "It was not done within the request's timeout; it may be yet.",
}


def text_of(code: ErrorCode) -> str | None:
    """Return words for an error that concerns a request as a whole."""
    return _TEXTS.get(code)
