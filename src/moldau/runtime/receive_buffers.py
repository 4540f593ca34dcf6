"""Where received bytes are: one arena for all connections, and buffers for what does not fit."""

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from moldau._native.client_stream import ReceiveArena
from moldau.kernel.disk import Buffer

CHUNK_BYTES: Final = 256 << 10
"""How much is read at once: many requests of the usual size, so that few of them are cut."""

ARENA_BYTES: Final = 1 << 20
KEPT_BYTES_MAX: Final = 16 << 20
GROWTH_BYTES_MAX: Final = 2 << 20


class ReceiveBuffers(ReceiveArena):
    """Memory to receive into; nothing is reused before the turn ends, because the log refers to it.

    What the log still writes from after that, it borrows (`lend`).

    Most requests arrive whole, and are read into the arena, one behind the other. A connection
    that has read a part of a request continues in a buffer of its own. An idle one holds nothing.
    """

    def __init__(self, own_bytes_max: int | None) -> None:
        super().__init__(_allocate(ARENA_BYTES), CHUNK_BYTES)
        self.own_bytes = 0
        """The size of all buffers that connections own."""
        self.claimed_bytes = 0
        """The size of all large frames that are being read: their buffers grow as bytes come."""
        self._own_bytes_max = own_bytes_max
        # Fresh memory costs page faults, ten times what copying costs.
        self._kept: dict[int, list[memoryview]] = {}
        self._kept_bytes = 0
        self._lent: dict[mmap.mmap, int] = {}  # what threads write from, and how many
        self._lent_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether a large frame may begin; the last one may exceed the bound."""
        if self._own_bytes_max is None:
            return True
        return max(self.own_bytes, self.claimed_bytes) + self._lent_bytes < self._own_bytes_max

    def take(self, size: int) -> memoryview:
        """Return a buffer with at least this size, for one connection."""
        size = max(CHUNK_BYTES, 1 << (size - 1).bit_length())
        self.own_bytes += size
        kept = self._kept.get(size)
        if kept:
            self._kept_bytes -= size
            return kept.pop()
        return _allocate(size)

    def retire(self, buffer: memoryview) -> None:
        """Give a buffer back; somebody may refer to it until the turn ends."""
        self.own_bytes -= len(buffer)
        self.retired.append(buffer)

    def reuse(self) -> None:
        """Take everything that was given back and is not lent: the turn has ended."""
        lent = []
        for buffer in self.retired:
            size = len(buffer)
            if buffer.obj in self._lent:
                lent.append(buffer)
            elif self._kept_bytes + size <= KEPT_BYTES_MAX:
                self._kept.setdefault(size, []).append(buffer)
                self._kept_bytes += size
        self.retired[:] = lent

    def lend(self, pieces: Sequence[Buffer]) -> tuple[list[Buffer], Callable[[], None]]:
        """Return pieces that stay as they are over the turn's end, until the second is called.

        A large frame is alone in its buffer, which is lent. What is in the arena is copied, and
        what others have made is nobody else's anyway.
        """
        arena = self.memory.obj
        kept: list[Buffer] = []
        owners = []
        for piece in pieces:
            owner = piece.obj if isinstance(piece, memoryview) else piece
            if owner is arena:
                kept.append(bytes(piece))
                continue
            kept.append(piece)
            if isinstance(owner, mmap.mmap):
                owners.append(owner)
                count = self._lent.get(owner, 0)
                self._lent[owner] = count + 1
                self._lent_bytes += 0 if count else len(owner)
        return kept, partial(self._take_back, owners)

    def _take_back(self, owners: Sequence[mmap.mmap]) -> None:
        for owner in owners:
            self._lent[owner] -= 1
            if not self._lent[owner]:
                del self._lent[owner]
                self._lent_bytes -= len(owner)


def _allocate(size: int) -> memoryview:
    """Return memory that the system gives when it is first written: a claim alone costs nothing."""
    return memoryview(mmap.mmap(-1, size))
