"""The file kernel: ranges of files, and whether the page cache has them."""

from typing import Protocol, final

from moldau.kernel.disk import Buffer

class OpenFile(Protocol):
    """An open file; holding the object keeps it open."""

    @property
    def fd(self) -> int: ...

@final
class FileRegion:
    """A range of a file, which stands for its bytes in a response; only the socket reads it."""

    file: OpenFile
    position: int
    length: int

    def __init__(self, file: OpenFile, position: int, length: int) -> None: ...
    def __len__(self) -> int: ...

def tells_residency(fd: int) -> bool:
    """Say whether `is_resident` can tell: cachestat needs Linux 6.5, RWF_NOWAIT a file system."""

def is_resident(fd: int, position: int, length: int) -> bool:
    """Say whether the page cache has a whole range, so that sending it does not wait."""

def pull_in(fd: int, position: int, length: int) -> int:
    """Read a range into the page cache, without the GIL; return how much of it the file has."""

@final
class PieceQueue:
    """Pieces of a response, regions of files among them, on their way to a socket."""

    unsent_bytes: int
    is_pulled: bool
    """Whether what comes next was read into the page cache: it is sent without a further look."""

    def add(self, pieces: list[Buffer | FileRegion], size: int) -> None:
        """Have pieces sent; nothing of what was added before may be left."""

    def clear(self) -> None:
        """Send nothing more."""

    def next_range(self, size_max: int) -> tuple[FileRegion, int, int]:
        """Return the region that comes next, and position and size of what is sent of it next."""

    def send(self, to: int, size_max: int) -> bool | None:
        """Send up to `size_max` bytes; say whether all are sent.

        None: the page cache does not have what comes next. `OSError` if the peer is gone or a file
        is shorter than its region.
        """
