"""What can be wrong with the files of a log, and with what is to be appended to it."""

from typing import Final

from moldau.kernel.disk import DiskError
from moldau.kernel.errors import ProtocolError
from moldau.protocol.errors import ErrorCode


class MalformedFileError(Exception):
    """A checkpoint or an identity file is not what it should be; `line` is 0 for the whole file."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.line = line
        self.reason = f"line {line}: {reason}" if line else reason


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


class AppendError(Exception):
    """Nothing of what was to be appended is; `code` is what the client is told."""

    def __init__(
        self, code: ErrorCode, reason: str, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.record_errors = record_errors
        """Which records of the batch are at fault, by their number, and why."""


class ProducerError(AppendError):
    """A batch does not follow what its producer wrote before."""


class StorageFullError(AppendError):
    """The disk is full: everything staged since the last write that went well is undone."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, reason)


class PartitionOfflineError(AppendError):
    """The partition, or the log directory that it is in, is out of service."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, reason)


class DirectoryRefusedError(Exception):
    """A log directory belongs to another node, or is of a version that is not known."""


class UnexpectedOffsetError(Exception):
    """What a follower fetched does not follow the end of its log."""


class OffsetOutOfRangeError(Exception):
    """There is no such offset in the log. Kafka's OFFSET_OUT_OF_RANGE."""

    def __init__(self, offset: int, log_start: int, log_end: int) -> None:
        super().__init__(f"offset {offset} is not in {log_start} to {log_end}")
        self.offset = offset


class CorruptLogError(Exception):
    """Records that were synced are damaged: only another replica can bring them back."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: at byte {position}: {reason}")
        self.path = path
        self.position = position


UNREADABLE: Final = (DiskError, ProtocolError, CorruptIndexError, CorruptLogError)
"""What a look into a log may raise when its files are not what they were."""
