"""Putting a new segment in the place of old ones, so that a crash leaves the one or the others.

    written     B.log.cleaned, its indexes, all on the device       a crash: the old segments
    1           every B.*.cleaned becomes B.*.swap                  as long as one is left: as above
    2           every file of the old segments becomes *.deleted    a crash: the new segment
    3           every B.*.swap loses its suffix                     a crash: the new segment

The steps run at once, on the event loop; the directory is synced afterwards, and only then may the
`.deleted` files go. A crash before that may lose renames, but not reorder them within a directory.
`recover` undoes step 1 or completes steps 2 and 3. The names, and what each state means, are
Kafka's: either may finish what the other began.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from moldau._native.records import read_batches
from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import Offset
from moldau.log.compaction.segment_reader import SegmentReader
from moldau.log.file_names import (
    CLEANED,
    DELETED,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    FileName,
    parse_name,
    segment_path,
)

_IO_BYTES: Final = 1 << 20


class Replacement(NamedTuple):
    """A new segment in `.cleaned` files, and the old ones that it stands for."""

    directory: str
    base_offset: Offset
    old_base_offsets: tuple[Offset, ...]


def complete(disk: Disk, replacement: Replacement) -> list[str]:
    """Swap; return the `.deleted` files, to be removed after a sync of the directory and a delay.

    The log, which is renamed first in steps 1 and 3, tells `recover` how far this got.
    """
    directory, base_offset, _ = replacement
    suffixes = [s for s in SEGMENT_SUFFIXES if _exists(disk, directory, base_offset, s + CLEANED)]
    for suffix in suffixes:
        path = segment_path(directory, base_offset, suffix)
        disk.rename(path + CLEANED, path + SWAP)
    deleted = _retire(disk, replacement)
    for suffix in suffixes:
        path = segment_path(directory, base_offset, suffix)
        disk.rename(path + SWAP, path)
    return deleted


def discard(disk: Disk, replacement: Replacement) -> None:
    """Remove the `.cleaned` files of a replacement that is not wanted any more."""
    for suffix in SEGMENT_SUFFIXES:
        path = segment_path(replacement.directory, replacement.base_offset, suffix) + CLEANED
        try:
            disk.remove(path)
        except DiskMissingError:
            continue


def recover(disk: Disk, directory: str) -> list[str]:
    """Undo or complete what a crash has interrupted, before the partition's files are looked at.

    Returns the `.deleted` files that this made.
    """
    files = _segment_files(disk, directory)
    cleaned = {file.base_offset for file in files if file.state == CLEANED}
    swapped = [file for file in files if file.state == SWAP]
    for file in files:
        if file.state == CLEANED or (file.state == SWAP and file.base_offset in cleaned):
            disk.remove(_path(directory, file))
    deleted: list[str] = []
    for file in swapped:
        if file.suffix == LOG and file.base_offset not in cleaned:
            end = _end_offset(disk, _path(directory, file))
            olds = {
                f.base_offset
                for f in files
                if f.state == "" and f.suffix == LOG and file.base_offset <= f.base_offset < end
            }
            # Its own old files as well: those of step 2 may be gone in part.
            olds.add(file.base_offset)
            old_offsets = tuple(sorted(olds))
            deleted += _retire(disk, Replacement(directory, file.base_offset, old_offsets))
    for file in sorted(swapped, key=_log_first):
        if file.base_offset not in cleaned:
            path = segment_path(directory, file.base_offset, file.suffix)
            disk.rename(path + SWAP, path)
    if cleaned or swapped:
        disk.sync_directory(directory)
    return deleted


def _retire(disk: Disk, replacement: Replacement) -> list[str]:
    """Take the old segments' files out of the log, logs first."""
    deleted = []
    for old in replacement.old_base_offsets:
        suffixes: Iterable[str] = SEGMENT_SUFFIXES
        if old != replacement.base_offset:
            # A snapshot is of the producers where a segment begins, and there none begins now.
            suffixes = (*SEGMENT_SUFFIXES, SNAPSHOT)
        for suffix in suffixes:
            path = segment_path(replacement.directory, old, suffix)
            try:
                disk.rename(path, path + DELETED)
            except DiskMissingError:
                continue
            deleted.append(path + DELETED)
    return deleted


def _exists(disk: Disk, directory: str, base_offset: Offset, suffix: str) -> bool:
    try:
        disk.size(segment_path(directory, base_offset, suffix))
    except DiskMissingError:
        return False
    return True


def _segment_files(disk: Disk, directory: str) -> list[FileName]:
    return [file for name in disk.list(directory) if (file := parse_name(name)) is not None]


def _path(directory: str, file: FileName) -> str:
    return segment_path(directory, file.base_offset, file.suffix + file.state)


def _log_first(file: FileName) -> tuple[Offset, bool]:
    return file.base_offset, file.suffix != LOG


def _end_offset(disk: Disk, path: str) -> int:
    """Return the offset behind the last batch of a log, 0 if it is empty."""
    end = 0
    reader = SegmentReader(disk, path, 0, _IO_BYTES)
    while data := reader.read():
        batches = read_batches(data, check_crc=False)
        used = batches[-1].position + batches[-1].size if batches else 0
        if batches:
            end = batches[-1].last_offset + 1
        reader.advance(data, used)
    return end
