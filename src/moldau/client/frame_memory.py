"""Memory for large answers, used again: fresh pages cost more than filling them."""

from typing import Final

FRAMES_MAX: Final = 4
FRAME_BYTES_MAX: Final = 16 << 20
ROUND_BYTES: Final = 1 << 18


class FrameMemory:
    """Keeps a few buffers that nobody looks at any more.

    A bytearray cannot be resized while anybody has a view of it; so one whose size can be changed
    is seen by nobody, and what is read into it next is read by nobody who expects something else.
    """

    def __init__(self) -> None:
        self._spare: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least this size, the smallest spare one that is large enough."""
        fitting = [buffer for buffer in self._spare if len(buffer) >= size]
        if not fitting:
            return bytearray(-(-size // ROUND_BYTES) * ROUND_BYTES)
        best = min(fitting, key=len)
        self._spare = [buffer for buffer in self._spare if buffer is not best]
        return best

    def give(self, buffer: object) -> bool:
        """Take a buffer back if it is one, nobody sees it, and there is room; say whether."""
        if (
            not isinstance(buffer, bytearray)
            or not ROUND_BYTES <= len(buffer) <= FRAME_BYTES_MAX
            or any(buffer is spare for spare in self._spare)
        ):
            return False
        try:
            buffer.append(buffer.pop())
        except BufferError:
            return False
        self._spare.append(buffer)
        if len(self._spare) > FRAMES_MAX:
            self._spare.remove(min(self._spare, key=len))
        return True
