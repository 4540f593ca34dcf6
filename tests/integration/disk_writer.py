"""A child process that writes through the group commit and says what is durable.

Usage: disk_writer.py DIRECTORY PARTITIONS. After `name size` on a line of its output, that many
bytes of the file must survive anything; every byte of a file is its place modulo 251.
"""

import asyncio
import sys

from moldau.kernel.disk import DiskError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.runtime.disk import FileDisk
from moldau.runtime.group_commit import Dirty
from moldau.runtime.sync_pool import SyncPool

PATTERN = bytes(range(251)) * 40
CHUNK = 3000
AHEAD_BYTES_MAX = 300_000


async def main(directory: str, partitions: int) -> None:
    """Write until killed or until the disk fails."""
    disk = FileDisk(directory, open_files_max=4)
    ends = [0] * partitions
    durable = [0] * partitions
    failed: list[DiskError] = []
    progress = asyncio.Event()

    def synced(partition: TopicPartition, end: Offset) -> None:
        sys.stdout.write(f"{partition.topic} {end}\n")
        sys.stdout.flush()
        durable[partition.partition] = end
        progress.set()

    def fail(error: DiskError) -> None:
        failed.append(error)
        progress.set()

    call_soon = asyncio.get_running_loop().call_soon_threadsafe
    pool = SyncPool(disk, call_soon=call_soon, on_synced=synced, on_failed=fail)
    turn = 0
    while not failed:
        number = turn % partitions
        turn += 1
        path, end = f"p{number}", ends[number]
        try:
            disk.append(path, [PATTERN[end % 251 :][:CHUNK]])
        except DiskError:
            break
        ends[number] += CHUNK
        new = [] if end else [""]
        pool.written([Dirty(TopicPartition(path, number), Offset(ends[number]), [path], new)])
        await asyncio.sleep(0)
        while not failed and sum(ends) - sum(durable) > AHEAD_BYTES_MAX:
            progress.clear()
            await progress.wait()
    pool.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
