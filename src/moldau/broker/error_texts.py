"""What a client is told when no part of its request is to blame."""

from typing import Final

from moldau.protocol.errors import ErrorCode

_TEXTS: Final = {
    ErrorCode.NOT_CONTROLLER: "No controller is active at the moment; try again.",
    ErrorCode.REQUEST_TIMED_OUT: "The request's time was up before it was known to be done.",
}


def text_of(code: ErrorCode) -> str | None:
    """Return words for an error that concerns a request as a whole."""
    return _TEXTS.get(code)
