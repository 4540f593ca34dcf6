"""What the broker needs from outside; the shell fills it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from moldau._native.files import FileRegion
from moldau.coordination.command import Answer, Command
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer, DiskColdError
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.extents import Extent
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """Make it not happen."""


class Environment(Protocol):
    """Time and chance."""

    def now(self) -> Instant:
        """Return both clocks."""

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        """Have something done at a time."""

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""


class ControllerPort(Protocol):
    """The active controller, wherever it is."""

    @property
    def leader_id(self) -> int | None:
        """The node that leads the quorum, None while no node does."""

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version, which the quorum keeps and no metadata record tells."""

    def describe_quorum(
        self, request: DescribeQuorumRequest, then: Callable[[DescribeQuorumResponse], None]
    ) -> None:
        """Have the quorum's leader tell about it."""

    def submit(self, command: Command[Answer], then: Callable[[Answer | ErrorCode], None]) -> None:
        """Have a command decided; nothing is committed before the call returns.

        `then` gets the answer when the decision is committed and this broker acts on it; or
        NOT_CONTROLLER when no node decides, and UNKNOWN_SERVER_ERROR when the controller failed.
        """


class Piece(NamedTuple):
    """A range of one partition's file."""

    partition: TopicPartition
    extent: Extent


class LoadedPieces(NamedTuple):
    """The bytes of pieces, in their order."""

    contents: Sequence[Buffer | None]
    """None for what cannot be read: then its partition is out of service already."""
    release: Callable[[], None] | None
    """To be called when the contents are sent or done with: the memory is used again."""


class SendablePieces(NamedTuple):
    """Pieces as a response sends them, in their order: bytes, or a region of their file."""

    contents: Sequence[Buffer | FileRegion | None]
    """None for what cannot be read: then its partition is out of service already."""
    release: Callable[[], None] | None
    """To be called when the contents are sent: the memory is used again."""
    memory_bytes: int
    """How much memory they take."""


class LogsPort(Protocol):
    """The logs of this broker, as far as the disk is asked for something."""

    def warm(
        self, partition: TopicPartition, cold: DiskColdError, then: Callable[[], None]
    ) -> None:
        """Bring into memory what a look into a log missed there, beside the loop."""

    def load(self, pieces: Sequence[Piece], then: Callable[[LoadedPieces], None]) -> None:
        """Read pieces of files, which may be replaced meanwhile, but not before this returns.

        `then` is called before this returns if all are in memory.
        """

    def ready(self, pieces: Sequence[Piece], then: Callable[[SendablePieces], None]) -> None:
        """Make pieces of files ready to be sent, as `load` does; large ones stay in their files."""

    def delete_records(
        self, partition: TopicPartition, before: Offset, then: Callable[[Offset | None], None]
    ) -> None:
        """Move a log's start; `then` gets the new one when it is durable, None if it cannot be."""

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """A look into a log has shown that it is broken: take it out of service."""


class LogSize(NamedTuple):
    """How much a partition's log takes."""

    partition: TopicPartition
    size: int
    """In bytes, without indexes."""
    offset_lag: int = 0
    """How far a copy is behind its log."""
    is_future: bool = False
    """Whether it is a copy that is to take the place of the log, in another directory."""


class DescribedDirectory(NamedTuple):
    """A log directory of this broker."""

    path: str
    is_online: bool
    total_bytes: int
    """The size of its volume; -1 if it is not known, as for one that is offline."""
    usable_bytes: int
    """What of it is free for this broker; -1 if it is not known."""
    logs: Sequence[LogSize]


class DirectoriesPort(Protocol):
    """The log directories of this broker."""

    def describe(self) -> Sequence[DescribedDirectory]:
        """Return all of them, those that are offline too; absolute paths, as they are compared."""

    def move(self, partition: TopicPartition, path: str) -> None:
        """Have a partition's log in a directory that is online; one yet to come, when it comes."""


class ShardWatch(Protocol):
    """Is told how the shards of coordinators fare."""

    def loaded(self, partition: TopicPartition, record_count: int, seconds: float) -> None:
        """A shard has replayed its log, and answers."""

    def unreadable(self, partition: TopicPartition, error: ProtocolError) -> None:
        """A shard cannot be made from its log, and refuses everything."""

    def lost(self, partition: TopicPartition, error: Exception) -> None:
        """What a shard decided was not recorded: it starts again from its log."""

    def failed(self, partition: TopicPartition, error: Exception) -> None:
        """What a shard does by itself, at a time or for others, ended in an error of ours."""


class LoggersPort(Protocol):
    """The process' own log, whose levels may be changed while it runs (KIP-412)."""

    def levels(self) -> Mapping[str, str]:
        """Return the level of each logger by name; that of `root` counts where none is set."""

    def set_level(self, name: str, level: str | None) -> None:
        """Set the level of a logger that there is, in Kafka's words; None: that of root counts."""
