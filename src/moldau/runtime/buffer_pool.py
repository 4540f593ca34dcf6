"""Memory for what is read from files and sent: used again, because fresh pages cost ten times."""

import mmap
from typing import Final

SMALL_BYTES: Final = 16 << 10
"""Below it memory is made anew: it comes from pages that the process has already."""
IDLE_BYTES_MAX: Final = 32 << 20


class BufferPool:
    """Buffers by size, each a power of two; a bounded number of bytes lies idle."""

    def __init__(self, idle_bytes_max: int = IDLE_BYTES_MAX) -> None:
        self._idle_bytes_max = idle_bytes_max
        self._idle: dict[int, list[memoryview]] = {}
        self.idle_bytes = 0

    def take(self, size: int) -> memoryview:
        """Return a buffer of at least `size` bytes, with anything in it."""
        if size <= SMALL_BYTES:
            return memoryview(bytearray(size))
        capacity = 1 << (size - 1).bit_length()
        idle = self._idle.get(capacity)
        if not idle:
            # Begins with a page, which a bytearray never does: the system copies much faster so.
            return memoryview(mmap.mmap(-1, capacity))
        self.idle_bytes -= capacity
        return idle.pop()

    def give_back(self, buffer: memoryview) -> None:
        """Take back a buffer that nobody looks at any more."""
        capacity = len(buffer)
        if capacity > SMALL_BYTES and self.idle_bytes + capacity <= self._idle_bytes_max:
            self._idle.setdefault(capacity, []).append(buffer)
            self.idle_bytes += capacity
