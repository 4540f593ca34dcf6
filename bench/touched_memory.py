"""Memory at hand for a load that writes, so that no broker is measured fetching it from a host."""

import mmap

from bench.load import Drive, Load, repeat

TOUCHED_BYTES_MAX = 1536 << 20


def in_touched_memory(step: Drive) -> Drive:
    """Return a load that takes as many steps as its time needs, each with memory at hand.

    The host of a virtual machine takes free memory back within a second, as that of a topic that
    was deleted. To get it again costs the next writer 2 to 3 s/GB, several times what is measured.
    So what the step before has written is touched, and freed for the page cache to grow into.
    """
    written = 0.0

    def touched(seconds: float) -> Load:
        nonlocal written
        _touch(min(int(written * 1.25), TOUCHED_BYTES_MAX))
        load = step(seconds)
        written = max(written, load.size)
        return load

    return lambda seconds: repeat(touched, seconds)


def _touch(size: int) -> None:
    if size:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        mmap.mmap(-1, size, flags=flags).close()
