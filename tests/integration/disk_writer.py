"""A child process that writes through the sync rounds and says what is durable.

Usage: disk_writer.py DIRECTORY PARTITIONS. After `name size` on a line of its output, that many
bytes of the file must survive anything; every byte of a file is its place modulo 251.
"""

import asyncio
import sys

from moldau.kernel.disk import DiskError
from moldau.log.sync_round import SyncRound
from moldau.runtime.disk import FileDisk
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.sync_pool import SyncPool

PATTERN = bytes(range(251)) * 40
CHUNK = 3000
AHEAD_BYTES_MAX = 300_000


class Files:
    """What is written and what of it is durable, by the number of the file."""

    def __init__(self, count: int) -> None:
        self.ends = [0] * count
        self.durable = [0] * count
        self.error: DiskError | None = None
        self.progress = asyncio.Event()
        self._dirty: dict[int, None] = {}
        self._syncing: list[tuple[int, int]] = []

    def written(self, number: int, size: int) -> None:
        self.ends[number] += size
        self._dirty[number] = None

    def take_round(self) -> SyncRound | None:
        if not self._dirty:
            return None
        taken = [(number, self.ends[number]) for number in self._dirty]
        self._dirty.clear()
        self._syncing = taken
        is_new = any(not self.durable[number] for number, _ in taken)
        return SyncRound([f"p{number}" for number, _ in taken], (), [""] if is_new else ())

    def synced(self, _: SyncRound) -> None:
        for number, end in self._syncing:
            sys.stdout.write(f"p{number} {end}\n")
            self.durable[number] = end
        sys.stdout.flush()

    def announce(self, _: SyncRound) -> None:
        self.progress.set()

    def put_back(self, _: SyncRound, error: DiskError) -> None:
        raise error  # there is nothing to replace

    def failed(self, error: DiskError) -> None:
        self.error = error
        self.progress.set()


async def main(directory: str, partitions: int) -> None:
    """Write until killed or until the disk fails."""
    disk = FileDisk(directory, open_files_max=4)
    files = Files(partitions)
    pool = SyncPool(disk, files, MachineEnvironment())
    turn = 0
    while files.error is None:
        number = turn % partitions
        turn += 1
        try:
            disk.append(f"p{number}", [PATTERN[files.ends[number] % 251 :][:CHUNK]])
        except DiskError:
            break
        files.written(number, CHUNK)
        pool.wake()
        await asyncio.sleep(0)
        while files.error is None and sum(files.ends) - sum(files.durable) > AHEAD_BYTES_MAX:
            files.progress.clear()
            await files.progress.wait()
    pool.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
