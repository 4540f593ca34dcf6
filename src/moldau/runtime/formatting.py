"""Making directories a node's own: whose they are, and what a new cluster begins with."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from moldau.consensus.voters import Voter, VoterListener, voters_record
from moldau.kernel.disk import Disk, DiskError
from moldau.kernel.ids import TopicId
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT
from moldau.kernel.uuid_text import uuid_to_text
from moldau.log.errors import DirectoryRefusedError, MalformedFileError
from moldau.log.identity import (
    META_PROPERTIES,
    PARTITION_METADATA,
    MetaProperties,
    parse_meta_properties,
    render_meta_properties,
    render_partition_metadata,
)
from moldau.log.segment_scan import read_whole
from moldau.metadata.bootstrap import (
    BOOTSTRAP_FILE,
    bootstrap_file,
    bootstrap_records,
    first_snapshot,
)
from moldau.metadata.features import LEVELS, find_level
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.listeners import controller_listener_of
from moldau.runtime.environment import HeldLock, NodeEnvironment, StoredDisk
from moldau.runtime.log_opening import directory_id_of
from moldau.runtime.memory_disk import MemoryDisk

METADATA_FOLDER = "__cluster_metadata-0"
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")

# What may lie in a directory that nobody has formatted: our lock, and a volume's own folder.
_NOTHING = {".lock", "lost+found/"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Directories that are this node's, locked, and who it is."""

    cluster_id: str
    node_id: int
    metadata_directory_id: bytes
    is_new: bool
    """Whether its directories were formatted just now."""
    locks: Mapping[str, HeldLock] = field(default_factory=dict)
    """By directory; whoever opens one releases its lock, the node that of its metadata."""

    def release(self) -> None:
        """Let others have the directories."""
        for lock in self.locks.values():
            lock.release()


def prepare_directories(settings: BrokerSettings, environment: NodeEnvironment) -> Prepared:
    """Find out who this node is; format what is new. Blocks, so it runs before the loop is busy.

    `DirectoryRefusedError`: a directory is not ours, in one line. A log directory that cannot be
    used at all is left to `LogStore.open`; the one for metadata must be there.
    """
    with ExitStack() as undo:
        locks: dict[str, HeldLock] = {}
        disks: dict[str, Disk] = {}
        for root in dict.fromkeys([settings.metadata_log_directory, *settings.log_directories]):
            try:
                disks[root] = environment.open_disk(root).waiting()
                locks[root] = environment.lock_directory(root)
            except DiskError:
                if root == settings.metadata_log_directory:
                    raise
            else:
                undo.callback(locks[root].release)
        prepared = _prepare(settings, disks, environment)
        undo.pop_all()
    return replace(prepared, locks=locks)


@dataclass(slots=True)
class Memory:
    """All that a node keeps with `durability=memory`; who holds it can start another with it."""

    metadata: StoredDisk = field(default_factory=MemoryDisk)
    logs: StoredDisk = field(default_factory=MemoryDisk)
    known: Prepared | None = None
    """Whose it is, once it is formatted."""


def prepare_memory(
    settings: BrokerSettings, memory: Memory, environment: NodeEnvironment
) -> Prepared:
    """Format what is gone with the process, unless it is kept from an earlier node."""
    if memory.known is not None:
        return replace(memory.known, is_new=False)
    entropy, now_ms = environment.entropy, environment.now().wall_ms
    directory_id = directory_id_of(entropy(16))
    voter = local_voter(settings, directory_id)
    format_metadata(memory.metadata, level_of(settings.metadata_version), voter, now_ms)
    cluster_id = uuid_to_text(directory_id_of(entropy(16)))
    memory.known = Prepared(cluster_id, settings.node_id, directory_id, is_new=True)
    return memory.known


def _prepare(
    settings: BrokerSettings, disks: Mapping[str, Disk], environment: NodeEnvironment
) -> Prepared:
    entropy, now_ms = environment.entropy, environment.now().wall_ms
    metadata_root = settings.metadata_log_directory
    found = {root: _look(root, disk) for root, disk in disks.items()}
    known = _agree(settings, found)
    is_new = found[metadata_root] is None
    if known is None:
        cluster_id = uuid_to_text(directory_id_of(entropy(16)))
        known = MetaProperties(cluster_id, settings.node_id)
    elif is_new:
        raise DirectoryRefusedError(
            f"{metadata_root}: the cluster's metadata is not here, but other log directories"
            f" belong to cluster {known.cluster_id}; check metadata.log.dir and log.dirs"
        )
    ids: dict[str, bytes] = {}
    for root, disk in disks.items():
        identity = found[root]
        if identity is not None and identity.directory_id is not None:
            ids[root] = identity.directory_id
            continue
        ids[root] = directory_id_of(entropy(16))
        if root == metadata_root and is_new:
            voter = local_voter(settings, ids[root])
            format_metadata(disk, level_of(settings.metadata_version), voter, now_ms)
        # Last of all: whoever finds it finds everything else.
        identity = MetaProperties(known.cluster_id, known.node_id, ids[root])
        disk.replace(META_PROPERTIES, render_meta_properties(identity))
    return Prepared(known.cluster_id, known.node_id, ids[metadata_root], is_new)


def format_metadata(disk: Disk, level: int, voter: Voter, now_ms: int) -> None:
    """Write what a new cluster begins with, as `kafka-storage format --standalone` does."""
    disk.replace(BOOTSTRAP_FILE, bootstrap_file(bootstrap_records(level), now_ms))
    disk.make_directory(METADATA_FOLDER)
    disk.replace(
        f"{METADATA_FOLDER}/{PARTITION_METADATA}", render_partition_metadata(METADATA_TOPIC_ID)
    )
    snapshot = first_snapshot(voters_record((voter,)), now_ms)
    disk.replace(f"{METADATA_FOLDER}/{FIRST_SNAPSHOT.file_name}", snapshot)
    disk.sync_directory("")


def local_voter(settings: BrokerSettings, directory_id: bytes) -> Voter:
    """Return this node as a member of the quorum."""
    listener = controller_listener_of(settings)
    where = VoterListener(listener.name, listener.host or "localhost", listener.port)
    return Voter(settings.node_id, directory_id, (where,))


def level_of(release: str) -> int:
    """Return the level of metadata.version for a release; `DirectoryRefusedError`."""
    level = find_level(release)
    if level is None:
        first, last = LEVELS[0].release, LEVELS[-1].release
        raise DirectoryRefusedError(
            f"metadata.version: there is no release {release}; it must be {first} to {last}"
        )
    return level


def _look(root: str, disk: Disk) -> MetaProperties | None:
    """Return whose a directory is, None if it is new."""
    names = disk.list("")
    if META_PROPERTIES in names:
        try:
            return parse_meta_properties(META_PROPERTIES, read_whole(disk, META_PROPERTIES))
        except MalformedFileError as error:
            text = f"{root}/{error}: whose log directory this is cannot be told"
            raise DirectoryRefusedError(text) from error
    # Formatting may have been cut short: it writes these, and meta.properties last.
    ours = {*_NOTHING, BOOTSTRAP_FILE, f"{METADATA_FOLDER}/", f"{META_PROPERTIES}.tmp"}
    others = [name for name in names if name not in ours and not name.endswith(".tmp")]
    if f"{METADATA_FOLDER}/" in names:
        inside = disk.list(METADATA_FOLDER)
        others += [f"{METADATA_FOLDER}/{name}" for name in inside if name.endswith(".log")]
    if others:
        raise DirectoryRefusedError(
            f"{root}: it is not empty ({_some(others)}) and has no {META_PROPERTIES}, so it is"
            " no data directory; choose an empty one"
        )
    return None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _agree(
    settings: BrokerSettings, found: dict[str, MetaProperties | None]
) -> MetaProperties | None:
    """Return what all directories that have an owner say of it."""
    known: tuple[str, MetaProperties] | None = None
    for root, identity in found.items():
        if identity is None:
            continue
        if identity.node_id != settings.node_id:
            raise DirectoryRefusedError(
                f"{root}: the directory belongs to node {identity.node_id}, and this is node"
                f" {settings.node_id}; check node.id and log.dirs"
            )
        if known is not None and known[1].cluster_id != identity.cluster_id:
            raise DirectoryRefusedError(
                f"{root}: the directory belongs to cluster {identity.cluster_id}, and {known[0]}"
                f" to {known[1].cluster_id}"
            )
        known = known or (root, identity)
    return None if known is None else known[1]
