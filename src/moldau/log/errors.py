"""What can be wrong with the files of a log, and with what is to be appended to it."""

from moldau.protocol.errors import ErrorCode


class MalformedFileError(Exception):
    """A checkpoint or an identity file is not what it should be; `line` is 0 for the whole file."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.line = line


class CorruptIndexError(Exception):
    """An index contradicts itself or its segment: its owner rebuilds it from the log."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class CorruptSnapshotError(Exception):
    """A producer snapshot is damaged: an older one, or the log itself, takes its place."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class ProducerError(Exception):
    """A batch does not follow what its producer wrote before; `code` is what the client is told."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
