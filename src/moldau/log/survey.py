"""Looking at a log directory before anything in it is opened, and making it ours."""

from dataclasses import dataclass, field

from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    RECOVERY_POINTS,
    find_clean_broker_epoch,
    parse_offsets,
)
from moldau.log.errors import DirectoryRefusedError, MalformedFileError
from moldau.log.folders import FolderState, is_known, parse_folder
from moldau.log.identity import (
    META_PROPERTIES,
    MetaProperties,
    parse_meta_properties,
    render_meta_properties,
)
from moldau.log.offset_checkpoints import CHECKPOINTS
from moldau.log.segment_scan import read_whole
from moldau.log.state import Notice


@dataclass(slots=True)
class Survey:
    """What is in a log directory."""

    identity: MetaProperties | None = None
    partitions: list[TopicPartition] = field(default_factory=list)
    futures: dict[TopicPartition, str] = field(default_factory=dict)
    """Folders of copies that are to come in the place of logs in other directories."""
    surplus: list[str] = field(default_factory=list)
    """Folders of copies that are not needed, because the log or another copy is here."""
    deleted: list[str] = field(default_factory=list)
    """Folders whose removal is to be finished."""
    checkpoints: dict[str, dict[TopicPartition, Offset]] = field(default_factory=dict)
    is_clean: bool = False
    """It was closed in good order: nothing is to be recovered."""
    broker_epoch: int | None = None
    """The broker's epoch then, for the controller."""
    notices: list[Notice] = field(default_factory=list)

    def offset(self, path: str, partition: TopicPartition) -> Offset:
        """Return what a checkpoint says of a partition, 0 if nothing."""
        return self.checkpoints.get(path, {}).get(partition, Offset(0))


def survey(disk: Disk) -> Survey:
    """Look, and change nothing; `disk` waits for the device."""
    found = Survey()
    names = disk.list("")
    for name in names:
        if not is_known(name):
            _take(found, name)
    for partition in [each for each in found.partitions if each in found.futures]:
        found.surplus.append(found.futures.pop(partition))
    if META_PROPERTIES in names:
        found.identity = _read_identity(disk)
    if CLEAN_SHUTDOWN in names:
        found.is_clean = True
        found.broker_epoch = find_clean_broker_epoch(read_whole(disk, CLEAN_SHUTDOWN))
    for path in CHECKPOINTS:
        if path in names:
            found.checkpoints[path] = _read_checkpoint(disk, path, found.notices)
    if RECOVERY_POINTS not in names and found.partitions and not found.is_clean:
        found.notices.append(Notice(RECOVERY_POINTS, "is missing: all records are checked"))
    return found


def _take(found: Survey, name: str) -> None:
    """Put an entry at the top where it belongs."""
    folder = parse_folder(name[:-1]) if name.endswith("/") else None
    if folder is None:
        found.notices.append(Notice(name, "is no part of a log directory; left alone"))
    elif folder.state is FolderState.DELETED:
        found.deleted.append(name[:-1])
    elif folder.partition is None:
        found.notices.append(Notice(name, f"is a {folder.state.value} replica; left alone"))
    elif folder.state is FolderState.IN_USE:
        found.partitions.append(folder.partition)
    elif folder.partition in found.futures:
        found.surplus.append(name[:-1])
    else:
        found.futures[folder.partition] = name[:-1]


def claim(disk: Disk, found: Survey, identity: MetaProperties) -> MetaProperties:
    """Make sure that the directory is ours, and note that it is in use; return its identity.

    The directory id in `identity` is for a directory that has none yet.
    """
    known = found.identity
    if known is None:
        if found.partitions:
            text = f"is missing; the partitions here are taken for node {identity.node_id}'s"
            found.notices.append(Notice(META_PROPERTIES, text, is_alarming=True))
    elif known.cluster_id != identity.cluster_id:
        raise DirectoryRefusedError(
            f"{META_PROPERTIES}: the log directory belongs to cluster {known.cluster_id}, "
            f"and this node to {identity.cluster_id}"
        )
    elif known.node_id != identity.node_id:
        raise DirectoryRefusedError(
            f"{META_PROPERTIES}: the log directory belongs to node {known.node_id}, "
            f"and this is node {identity.node_id}"
        )
    if known is not None and known.directory_id is not None:
        identity = known
    # First of all: whatever is changed from here on, a crash must not look like a good ending.
    if found.is_clean:
        disk.remove(CLEAN_SHUTDOWN)
    # Folders that a process made before it was killed count from here on, so they have to stay.
    disk.sync_directory("")
    if identity != known:
        disk.replace(META_PROPERTIES, render_meta_properties(identity))
    return identity


def _read_identity(disk: Disk) -> MetaProperties:
    try:
        return parse_meta_properties(META_PROPERTIES, read_whole(disk, META_PROPERTIES))
    except MalformedFileError as error:
        raise DirectoryRefusedError(
            f"{error}: whose log directory this is cannot be told"
        ) from error


def _read_checkpoint(disk: Disk, path: str, notices: list[Notice]) -> dict[TopicPartition, Offset]:
    try:
        return parse_offsets(path, read_whole(disk, path))
    except MalformedFileError as error:
        text = f"{error.reason}; taken as absent"
        notices.append(Notice(path, text, is_alarming=path == RECOVERY_POINTS))
    return {}
