"""PRODUCER_FENCED, which older versions of the APIs for transactions do not know."""

from moldau.protocol.errors import ErrorCode


def seen_code(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """Return the code as a client of this version knows it."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
