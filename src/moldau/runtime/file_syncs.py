"""Syncs of open files in native threads, and their way back to the event loop."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau._native.sync_threads import SyncThreads
from moldau.kernel.disk import DiskError
from moldau.runtime.open_files import Descriptor

if TYPE_CHECKING:
    from moldau.runtime.disk import FileDisk

PIPE_BYTES = 64

FilesSynced = Callable[[DiskError | None], None]
"""Hears on the event loop that all files are on the device, or why not."""


class FileSyncs:
    """Syncs files of one disk without the interpreter: neither begin nor end waits for its lock."""

    def __init__(self, disk: "FileDisk", *, threads: int) -> None:
        self._disk = disk
        self._loop = asyncio.get_running_loop()
        self._told, told = os.pipe()
        os.set_blocking(self._told, False)
        self._end = Descriptor(told)
        self._threads = SyncThreads(told, threads)
        self._begun: dict[int, tuple[Sequence[str], Sequence[Descriptor], FilesSynced]] = {}
        self._loop.add_reader(self._told, self._take_ended)

    def try_begin(self, paths: Sequence[str], then: FilesSynced) -> bool:
        """Sync files; decline, with False, if one of them is not open: to open it may wait."""
        files = self._disk.find_open(paths)
        if files is None:
            return False
        number = self._threads.begin([file.fd for file in files])
        self._begun[number] = paths, files, then
        return True

    def close(self) -> None:
        """Wait for the syncs that run; what became of them is not told any more."""
        self._loop.remove_reader(self._told)
        self._threads.close()
        self._begun.clear()
        os.close(self._told)

    def _take_ended(self) -> None:
        os.read(self._told, PIPE_BYTES)
        for number, error, failed in self._threads.take_ended():
            paths, _, then = self._begun.pop(number)
            then(self._disk.sync_error(paths[failed], error) if error else None)
