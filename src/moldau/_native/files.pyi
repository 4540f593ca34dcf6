"""The file kernel: ranges of files, and whether the page cache has them."""

from typing import Protocol, final

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
