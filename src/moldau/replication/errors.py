"""Why a partition cannot be used here."""

from moldau.protocol.errors import ErrorCode


class ReplicaError(Exception):
    """A request about a partition is refused; `code` is what the client is told."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
