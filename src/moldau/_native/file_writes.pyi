"""The file kernel: pieces of memory written to a file in one go."""

from collections.abc import Sequence

from moldau.kernel.disk import Buffer

def write_pieces(fd: int, pieces: Sequence[Buffer], /) -> None:
    """Write all pieces where the file stands, with one system call if they are few enough.

    `OSError` says why not; a part may have been written then.
    """
