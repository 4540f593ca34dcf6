"""What lies in a partition's directory: told apart, and tidied where a crash left something."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.kernel.disk import TEMPORARY_SUFFIX, Disk
from moldau.kernel.ids import Offset
from moldau.log.compaction import swap
from moldau.log.file_names import (
    CLEANED,
    CUT,
    DELETED,
    LOG,
    SNAPSHOT,
    SWAP,
    parse_name,
    segment_path,
)
from moldau.log.identity import PARTITION_METADATA
from moldau.log.leader_epochs import LEADER_EPOCH_CHECKPOINT
from moldau.log.state import Notice

OTHERS: Final = {PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT}


@dataclass(slots=True)
class Inventory:
    """The files of a partition: its segments by base offset, each with its suffixes."""

    segments: dict[Offset, set[str]] = field(default_factory=dict)
    snapshots: list[Offset] = field(default_factory=list)
    has_epochs: bool = False
    notices: list[Notice] = field(default_factory=list)


def take_inventory(disk: Disk, directory: str) -> Inventory:
    """Look what is there; complete or undo compaction's swaps, remove what has left the log."""
    found = Inventory()
    indexes: list[tuple[Offset, str]] = []
    names = disk.list(directory)
    if any(name.endswith((CLEANED, SWAP)) for name in names):
        swap.recover(disk, directory)
        names = disk.list(directory)
    for name in names:
        path = f"{directory}/{name}"
        file = parse_name(name)
        if file is not None and file.state == DELETED:
            disk.remove(path)
        elif file is not None and file.suffix == SNAPSHOT:
            found.snapshots.append(file.base_offset)
        elif file is not None and file.suffix == LOG:
            found.segments[file.base_offset] = {LOG}
        elif file is not None:
            indexes.append((file.base_offset, file.suffix))
        elif name == LEADER_EPOCH_CHECKPOINT:
            found.has_epochs = True
        elif name.endswith(TEMPORARY_SUFFIX) and name.removesuffix(TEMPORARY_SUFFIX) in OTHERS:
            disk.remove(path)
        elif name not in OTHERS and not name.endswith(CUT):
            found.notices.append(Notice(path, "is no file of a log; left alone"))
    _match_indexes(disk, directory, found, indexes)
    return found


def _match_indexes(
    disk: Disk, directory: str, found: Inventory, indexes: Sequence[tuple[Offset, str]]
) -> None:
    for base_offset, suffix in indexes:
        suffixes = found.segments.get(base_offset)
        if suffixes is None:
            path = segment_path(directory, base_offset, suffix)
            disk.remove(path)
            found.notices.append(Notice(path, "is an index without its segment; removed"))
        else:
            suffixes.add(suffix)
