"""A file's content as the page cache shows it and as the device holds it."""

from random import Random

SECTOR = 512  # the device writes one whole or not at all
BLOCK = 4096  # the file system's unit of allocation


class CachedFile:
    """Content that grows at the end and is cut, and what a crash may leave of it.

    What was synced survives, unless it was cut off afterwards. Of what came later each sector may
    be on the device or read as zeros, and the size may be any in between, because the system writes
    back when it pleases. A cut that was not synced may be undone; cuts survive in their order. When
    a cut is undone, the block it went through may show what was appended after it: that block kept
    its place on the device and can have been written before the journal knew of the cut.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.cold = False
        self._durable = bytearray()
        self._clean = 0  # below this a sync finds nothing to write
        self._cuts: list[tuple[bytes, int]] = []  # content before each cut not synced, and where

    def truncate(self, size: int) -> None:
        """Cut the content to `size`."""
        self._cuts.append((bytes(self.data), size))
        del self.data[size:]

    def sync(self) -> None:
        """Put on the device what changed since the last sync."""
        changed = self._certain(len(self._cuts)) // SECTOR * SECTOR
        del self._durable[changed:]
        self._durable.extend(bytes(changed - len(self._durable)))
        self._durable += memoryview(self.data)[changed:]
        self._settle()

    def fail_sync(self, random: Random) -> None:
        """Lose some of what a sync should have written.

        As on Linux, the cache goes on to show it and takes it for written: no later sync will
        put it on the device.
        """
        self._durable = self._outcome(random, cuts=len(self._cuts))
        self._settle()

    def crash(self, random: Random) -> None:
        """Become what is found after a power loss."""
        self._durable = self._outcome(random, cuts=random.randint(0, len(self._cuts)))
        self.data = bytearray(self._durable)
        self.cold = False
        self._settle()

    def flip(self, position: int, mask: int) -> None:
        """Damage one byte, in memory and on the device."""
        self.data[position] ^= mask
        if position < len(self._durable):
            self._durable[position] ^= mask

    def rot(self, random: Random, bits: int) -> int:
        """Damage bits of what was not synced; return how many."""
        tail = len(self.data) - self._clean
        for _ in range(bits if tail > 0 else 0):
            self.data[self._clean + random.randrange(tail)] ^= 1 << random.randrange(8)
        return bits if tail > 0 else 0

    def _settle(self) -> None:
        self._clean = len(self.data)
        self._cuts.clear()

    def _certain(self, cuts: int) -> int:
        """Return how much the device holds for sure, if so many cuts reached it."""
        return min([self._clean, *(size for _, size in self._cuts[:cuts])])

    def _state(self, cuts: int) -> bytes | bytearray:
        """Return the content just before the next cut."""
        return self._cuts[cuts][0] if cuts < len(self._cuts) else self.data

    def _outcome(self, random: Random, *, cuts: int) -> bytearray:
        certain = self._certain(cuts)
        content = self._state(cuts)
        image = self._durable[:certain]
        if len(content) > len(image):
            sizes = (len(image), len(content), random.randint(len(image), len(content)))
            image.extend(bytes(random.choice(sizes) - len(image)))
        written = random.choice((0.0, 0.5, 1.0, random.random()))
        sectors = range(certain // SECTOR * SECTOR, len(image), SECTOR)
        _overlay(image, content, sectors, random, written)
        if cuts < len(self._cuts):
            cut = self._cuts[cuts][1]
            end = min(len(image), (cut // BLOCK + 1) * BLOCK)
            sectors = range(cut // SECTOR * SECTOR, end, SECTOR)
            _overlay(image, self._state(cuts + 1), sectors, random, written)
        return image


def _overlay(
    image: bytearray, content: bytes | bytearray, sectors: range, random: Random, written: float
) -> None:
    """Write some of the sectors of `content`, which reads as zeros past its end."""
    for start in sectors:
        if random.random() < written:
            end = min(start + SECTOR, len(image))
            image[start:end] = content[start:end].ljust(end - start, b"\0")
