"""A command, or a part of one, that is answered with an error."""

from moldau.protocol.errors import ErrorCode


class Refusal(Exception):  # noqa: N818  (an answer, not a failure)
    """What the client is told: a code, and words that say what would be allowed."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
